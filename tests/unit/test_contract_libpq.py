"""The connection to PostgreSQL as a contract writes it, and as libpq understands it; there is no server here."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from tests.unit.passwords import PASSWORDS, shows_part

from reslice.contract import Connection
from reslice.contract_connection import Mistaken, masked, read

FOLDER = Path("/project")


def reading(text: str, **environ: str) -> Connection:
    return read(text, FOLDER, environ)


def parts(text: str, **environ: str) -> dict[str, object]:
    return dict(conninfo_to_dict(reading(text, **environ).url))


def mistakes(text: str, **environ: str) -> tuple[str, ...]:
    with pytest.raises(Mistaken) as caught:
        reading(text, **environ)
    return caught.value.mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://", {}),
        ("postgres://", {}),
        ("postgresql:///", {}),
        ("postgresql://anna@db.example:5433/shop?sslmode=require",
         {"user": "anna", "host": "db.example", "port": "5433", "dbname": "shop", "sslmode": "require"}),
        ("postgres://h/shop", {"host": "h", "dbname": "shop"}),
        ("PostgreSQL://h/shop", {"host": "h", "dbname": "shop"}),
        ("postgresql://h1:1,h2,h3:3/shop?target_session_attrs=read-write&load_balance_hosts=random",
         {"host": "h1,h2,h3", "port": "1,,3", "dbname": "shop",
          "target_session_attrs": "read-write", "load_balance_hosts": "random"}),
        ("postgresql:///shop?host=/run/postgresql", {"host": "/run/postgresql", "dbname": "shop"}),
        ("postgresql://%2Frun%2Fpostgresql/shop", {"host": "/run/postgresql", "dbname": "shop"}),
        ("postgresql:///?service=shop", {"service": "shop"}),
        ("postgresql://[2001:db8::1]:5433/shop", {"host": "2001:db8::1", "port": "5433", "dbname": "shop"}),
        ("postgresql://an%40na@h/sh%20op", {"user": "an@na", "host": "h", "dbname": "sh op"}),
        ("postgresql://h/shop?options=-c%20search_path%3Dmart%20-c%20role%3Dwriter",
         {"host": "h", "dbname": "shop", "options": "-c search_path=mart -c role=writer"}),
        ("postgresql://h/shop?ssl=true", {"host": "h", "dbname": "shop", "sslmode": "require"}),
        ("postgresql://h/shop?application_name=a;b", {"host": "h", "dbname": "shop", "application_name": "a;b"}),
    ],
)  # fmt: skip
def test_a_url_means_what_libpq_says(text: str, expected: dict[str, str]) -> None:
    connection = reading(text)
    assert parts(text) == expected
    assert (connection.engine, connection.shown, connection.path) == ("postgresql", text, None)


ODD = "a@b/c?d#e:%41&= [é]'\"\\"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://bob:${env:V}@h/db", {"user": "bob", "password": ODD, "host": "h", "dbname": "db"}),
        ("postgresql://${env:V}@h/db", {"user": ODD, "host": "h", "dbname": "db"}),
        ("postgresql://${env:V}:${env:V}@h", {"user": ODD, "password": ODD, "host": "h"}),
        ("postgresql://h/${env:V}", {"host": "h", "dbname": ODD}),
        ("postgresql://h/db?password=${env:V}&sslmode=require",
         {"host": "h", "dbname": "db", "password": ODD, "sslmode": "require"}),
        ("postgresql://bob:x${env:V}y${env:V}@h", {"user": "bob", "password": f"x{ODD}y{ODD}", "host": "h"}),
        ("postgresql://h?application_name=${env:V}", {"host": "h", "application_name": ODD}),
        ("postgresql://${env:HOSTS}/db", {"host": "h1,::1", "port": "1,2", "dbname": "db"}),
        ("postgresql://${env:SOCKET}/db", {"host": "/run/a b", "dbname": "db"}),
        ("postgresql://h:${env:PORT}/db", {"host": "h", "port": "5433", "dbname": "db"}),
        ("${env:URL}", {"user": "bob", "password": "p@w", "host": "h", "sslmode": "require"}),
        ("${env:URL}&application_name=${env:V}",
         {"user": "bob", "password": "p@w", "host": "h", "sslmode": "require", "application_name": ODD}),
        ("postgresql://bob:${env:NONE}@h", {"user": "bob", "host": "h"}),
    ],
)  # fmt: skip
def test_a_secret_that_is_a_part_means_itself_and_a_whole_url_is_a_url(text: str, expected: dict[str, str]) -> None:
    values = {
        "V": ODD,
        "HOSTS": "h1:1,[::1]:2",
        "SOCKET": "/run/a b",
        "PORT": "5433",
        "URL": "postgres://bob:p%40w@h?sslmode=require",
        "NONE": "",
    }
    assert {key: value for key, value in parts(text, **values).items() if value} == expected


def test_a_secret_that_looks_like_a_mark_is_not_filled_again() -> None:
    found = parts("postgresql://${env:A}:${env:B}@h", A="\ue0001\ue001", B="two")
    assert (found["user"], found["password"]) == ("\ue0001\ue001", "two")


def test_files_that_are_named_are_beside_the_contract() -> None:
    text = "postgresql://anna@h/shop?sslrootcert=certs/ca.pem&sslcert=/etc/c.pem&sslkey=k.pem&passfile=pass%20file"
    assert parts(text) == {
        "user": "anna",
        "host": "h",
        "dbname": "shop",
        "sslrootcert": "/project/certs/ca.pem",
        "sslcert": "/etc/c.pem",
        "sslkey": "/project/k.pem",
        "passfile": "/project/pass file",
    }
    assert parts("postgresql://h?sslrootcert=system&sslkey=pkcs11:k")["sslrootcert"] == "system"
    assert parts("postgresql://h?sslrootcert=system&sslkey=pkcs11:k")["sslkey"] == "pkcs11:k"


ESCAPE = "an @ in a name or a password is written %40, a / is written %2F"
PORT = "a port is a whole number from 1 to 65535; a / or an @ of a password is written %2F or %40"
PAIRS = "options are written ?key=value&key=value; an = or & inside a value is written %3D or %26"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("postgresql://h/db?sslmod=require", "libpq has no option sslmod; did you mean sslmode?"),
        ("postgresql://h/db?conect_timeout=1", "libpq has no option conect_timeout; did you mean connect_timeout?"),
        ("postgresql://h/db?SSLMODE=require", "libpq has no option SSLMODE; did you mean sslmode?"),
        ("postgresql://h/db?zzz=1", "libpq has no option zzz"),
        ("postgresql://h/db?a-b=1", "an option is not one of libpq's"),
        ("postgresql://h/db?sslmode", PAIRS),
        ("postgresql://h/db?options=-c a=b", "a space in a URL is written %20"),
        ("postgresql://h/db?application_name=a=b", PAIRS),
        ("postgresql://h:x/db", PORT),
        ("postgresql://h:70000/db", PORT),
        ("postgresql://h:0/db", PORT),
        ("postgresql://h1,h2/db?port=1,x", PORT),
        ("postgresql://a@b@h/db", ESCAPE),
        ("postgresql://h/d@b", ESCAPE),
        ("postgresql://[::1/db", "an IPv6 address stands between [ and ]"),
        ("postgresql://h/100%", "a % that is no percent-escape is written %25"),
        ("postgresql://h/d%00", "a URL holds no NUL character"),
        ("postgresql://h/d\0b", "a URL holds no NUL character"),
        ("postgresql://h/%FF", "what it holds is not UTF-8 text"),
        ("postgresql://h/db?connect_timeout=5s", "connect_timeout is a whole number"),
        ("postgresql://h/db?replication=database",
         "replication makes a connection for replicas, on which no table is written; leave it out"),
    ],
)  # fmt: skip
def test_what_libpq_does_not_understand_is_named(text: str, found: str) -> None:
    assert found in mistakes(text)


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://u:s3cr3t@x@h/db",
        "postgresql://u:s3cr3t/x@h/db",
        "postgresql://u:s3cr3t/x?y=1@h/db",
        "postgresql://u:s3cr3t%x@h/db",
        "postgresql://u:s3cr3t x@h/db",
        "postgresql://h/db?s3cr3t=1",
        "postgresql://[s3cr3t/db",
        "postgresql://u:s3cr3t\0@h/db",
        "postgresql://u:\udcffs3cr3t@h/db",
    ],
)
def test_a_broken_url_that_was_put_in_is_not_repeated(value: str) -> None:
    with pytest.raises(Mistaken) as caught:
        reading("${env:URL}", URL=value)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value.mistakes)


@pytest.mark.parametrize("rest", ["?x=y@h/db", "?zzz=1&a=b@h/db"])
def test_an_option_that_may_be_the_end_of_a_password_is_not_named(rest: str) -> None:
    assert mistakes(f"postgresql://bob:hun/ter{rest}") == ("an option is not one of libpq's",)


FORMS = [
    "postgresql://bob:${env:PW}@h/db",
    "postgresql://bob:x${env:PW}@h1,h2/db?sslmode=require",
    "postgresql://h/db?password=${env:PW}",
    "postgresql://h/db?application_name=a&sslpassword=${env:PW}&sslmode=require",
]


@given(password=PASSWORDS, form=st.sampled_from(FORMS))
def test_a_password_is_put_in_whole_and_never_shown(password: str, form: str) -> None:
    connection = reading(form, PW=password)
    values = conninfo_to_dict(connection.url)
    found = str(values.get("password") or values.get("sslpassword"))
    assert found == ("x" if ":x$" in form else "") + password
    assert not shows_part(repr(connection) + connection.shown, password)
    assert "***" in connection.shown


@given(password=PASSWORDS, form=st.sampled_from(FORMS))
def test_a_password_that_is_written_out_is_a_mistake_and_never_shown(password: str, form: str) -> None:
    """Also one that is written without percent-escapes: whatever libpq takes its parts for."""
    text = form.replace("${env:PW}", password)
    with pytest.raises(Mistaken) as caught:
        reading(text)
    said = "".join(traceback.format_exception(caught.value)) + repr(caught.value.mistakes)
    assert not shows_part(said, password)
    is_taken_for_other_things = {"/", "?"} <= set(password) or password[0] == "&"
    assert caught.value.mistakes[0].startswith("a password is written out; ") or is_taken_for_other_things
    if not {"/", "?", "&", "#"} & set(password):
        assert not shows_part(masked(text), password)


def test_without_the_driver_it_says_what_to_install() -> None:
    code = """
import sys
from pathlib import Path
sys.modules["psycopg"] = None
from reslice.contract_connection import Mistaken, read
assert read("duckdb:///a.duckdb", Path("/x"), {}).engine == "duckdb"
try:
    read("postgresql://h/db", Path("/x"), {})
except Mistaken as mistaken:
    print(mistaken)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = 'PostgreSQL needs the driver psycopg, which is not installed: pip install "reslice[postgres]"\n'
    assert done.stdout == expected


def test_the_driver_is_loaded_for_postgresql_alone() -> None:
    code = """
import sys
from pathlib import Path
from reslice.contract_connection import read
read("duckdb:///a.duckdb", Path("/x"), {})
print("psycopg" in sys.modules)
read("postgresql://h/db", Path("/x"), {})
print("psycopg" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n"
