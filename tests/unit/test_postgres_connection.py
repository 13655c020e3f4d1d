"""A connection to a real PostgreSQL: what it brings, what is said when there is none, and what a proxy shares."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.passwords import PASSWORDS, shows_part
from tests.unit.postgres_servers import Server, pgbouncer, pgbouncer_program, server

from reslice import contract_connection
from reslice.contract import Connection
from reslice.engines.postgres import connection as opening
from reslice.engines.postgres.connection import behind_transaction_pooler, open_connection, same_parameters
from reslice.errors import Misused, ResliceError, Retryable

PASSWORD = "kN7/@:?#&=% ü'\"\\p"
NOW = timedelta(0)
NO_FILE = "No such file or directory"
NO_NAME = "[Errno -2] Name or service not known"


VERSIONS = [pytest.param(18, id="postgresql18"), pytest.param(16, id="postgresql16", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=VERSIONS)
def shop(request: pytest.FixtureRequest) -> Iterator[Server]:
    with server(request.param) as running:
        running.run(
            f"CREATE ROLE anna LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
            "CREATE ROLE guest NOLOGIN",
            "CREATE ROLE single LOGIN CONNECTION LIMIT 1",
            "CREATE DATABASE closed ALLOW_CONNECTIONS false",
        )
        running.ask_for_passwords("anna")
        yield running


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "no-pass-file"))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    (tmp_path / "services").write_text("")


def read(text: str, **environ: str) -> Connection:
    return contract_connection.read(text, Path("/nowhere"), environ)


def never(words: str) -> None:
    raise AssertionError(f"waited: {words}")


def opened(text: str, **environ: str) -> psycopg.Connection[tuple[object, ...]]:
    return open_connection(read(text, **environ), NOW, never)


def refusal(text: str, **environ: str) -> ResliceError:
    with pytest.raises(ResliceError) as caught:
        opened(text, **environ).close()
    assert caught.value.unchanged == "nothing was read or written"
    return caught.value


def everything(error: ResliceError) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.failures) + error.next


def options(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, str]:
    return {each.keyword.decode(): each.val.decode() for each in connection.pgconn.info if each.val}


def one(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> object:
    found = connection.execute(sql.encode()).fetchone()
    assert found is not None
    return found[0]


def test_what_the_user_did_not_give_is_set(shop: Server) -> None:
    with opened(shop.url()) as connection:
        assert connection.autocommit
        assert connection.prepare_threshold is None
        assert one(connection, "SHOW application_name") == "reslice"
        assert one(connection, "SHOW client_encoding") == "UTF8"
        found = options(connection)
    assert {key: found[key] for key in ("connect_timeout", "keepalives_idle", "keepalives_interval")} == {
        "connect_timeout": "10",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
    }
    assert (found["keepalives_count"], found["tcp_user_timeout"]) == ("3", "60000")


def test_what_the_user_gave_stays(shop: Server) -> None:
    more = "&application_name=nightly&connect_timeout=7&keepalives_idle=9"
    more += "&options=-c%20search_path%3Dx%20-c%20role%3Dguest"
    with opened(shop.url(more=more)) as connection:
        assert one(connection, "SHOW application_name") == "nightly"
        assert one(connection, "SHOW search_path") == "x"
        assert one(connection, "SELECT current_user") == "guest"
        assert (options(connection)["connect_timeout"], options(connection)["keepalives_idle"]) == ("7", "9")
        assert options(connection)["keepalives_count"] == "3"


def test_what_the_environment_and_a_service_file_give_stays(
    shop: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGAPPNAME", "from the environment")
    (tmp_path / "services").write_text(
        f"[shop]\nhost={shop.folder}\nport={shop.port}\nuser=postgres\ndbname=postgres\nconnect_timeout=21\ntcp_user_timeout=5000\n"
    )
    with opened("postgresql:///?service=shop") as connection:
        assert one(connection, "SHOW application_name") == "from the environment"
        assert (options(connection)["connect_timeout"], options(connection)["tcp_user_timeout"]) == ("21", "5000")
        assert options(connection)["keepalives_idle"] == "30"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL"])
def test_nothing_at_all_means_the_environment(scheme: str, shop: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", str(shop.folder))
    monkeypatch.setenv("PGPORT", str(shop.port))
    monkeypatch.setenv("PGUSER", "postgres")
    monkeypatch.setenv("PGDATABASE", "template1")
    with opened(f"{scheme}://") as connection:
        assert one(connection, "SELECT current_database()") == "template1"


def test_the_encoding_is_utf8_whatever_is_asked_for(shop: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for more in ("", "&client_encoding=SQL_ASCII"):
        with opened(shop.url(more=more)) as connection:
            assert one(connection, "SELECT 'ü€'") == "ü€"


@pytest.mark.parametrize("text", ["anna:${env:PW}@/postgres?host=", "/postgres?user=anna&password=${env:PW}&host="])
def test_a_password_from_the_environment_means_itself(shop: Server, text: str) -> None:
    with opened(f"postgresql://{text}{shop.folder}&port={shop.port}", PW=PASSWORD) as connection:
        assert one(connection, "SELECT current_user") == "anna"


def test_a_whole_url_is_taken_as_it_is(shop: Server) -> None:
    url = f"postgresql://anna:{quote(PASSWORD, safe='')}@/postgres?{shop.at}"
    with opened("${env:URL}", URL=url) as connection:
        assert one(connection, "SELECT current_user") == "anna"


@pytest.mark.parametrize("way", ["PGPASSWORD", "pass file", "service"])
def test_a_password_libpq_finds_itself(way: str, shop: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shop.url("anna")
    if way == "PGPASSWORD":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    elif way == "service":
        (tmp_path / "services").write_text(f"[shop]\nuser=anna\npassword={PASSWORD}\n")
        text = f"postgresql:///postgres?{shop.at}&service=shop"
    else:
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        (tmp_path / "pass").write_text(f"*:*:*:anna:{escaped}\n")
        (tmp_path / "pass").chmod(0o600)
        connection = contract_connection.read(f"{text}&passfile=pass", tmp_path, {})
        with open_connection(connection, NOW, never) as found:
            assert one(found, "SELECT current_user") == "anna"
        return
    with opened(text) as found:
        assert one(found, "SELECT current_user") == "anna"


def test_a_password_is_in_no_title(shop: Server) -> None:
    with opened(f"postgresql://anna:${{env:PW}}@/postgres?{shop.at}", PW=PASSWORD) as connection:
        assert PASSWORD not in repr(connection)
        with psycopg.connect(shop.url()) as other:
            row = other.execute("SELECT to_jsonb(a)::text FROM pg_stat_activity a WHERE usename = 'anna'").fetchone()
        assert row is not None and "anna" in row[0] and "kN7" not in row[0]
        processes = (connection.info.backend_pid, "self")
        titles = [Path(f"/proc/{process}/cmdline").read_bytes() for process in processes]
    assert b"anna" in titles[0]
    assert not any(b"kN7" in title for title in titles)


MISUSED = [
    ("postgres", "nope", "", 'database "nope" does not exist'),
    ("nobody_here", "postgres", "", 'role "nobody_here" does not exist'),
    ("guest", "postgres", "", 'role "guest" is not permitted to log in'),
    ("anna", "postgres", "", "fe_sendauth: no password supplied"),
    ("postgres", "closed", "", 'database "closed" is not currently accepting connections'),
    ("postgres", "postgres", "&options=-c%20nosuch%3D1", 'unrecognized configuration parameter "nosuch"'),
    ("postgres", "postgres", "&options=-c%20work_mem%3Dx", 'invalid value for parameter "work_mem": "x"'),
]


@pytest.mark.parametrize(("user", "database", "more", "said"), MISUSED)
def test_what_has_to_be_corrected_is_exit_2(shop: Server, user: str, database: str, more: str, said: str) -> None:
    error = refusal(shop.url(user, database, more))
    assert isinstance(error, Misused) and error.kind == "connection"
    assert error.failures[0].asked == f"connection: {shop.url(user, database, more)}"
    assert error.failures[0].found == (f"{shop.socket}: {said}",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("postgresql:///?service=nope", 'definition of service "nope" not found'),
        ("postgresql:///x?sslmode=wrong", 'invalid sslmode value: "wrong"'),
        ("postgresql://h1,h2/x?port=1,2,3", "could not match 3 port numbers to 2 hosts"),
        ("postgresql://a..b/x", "the host is none that a host can be called"),
    ],
)
def test_what_libpq_cannot_use_is_exit_2(text: str, found: str) -> None:
    error = refusal(text)
    assert isinstance(error, Misused) and error.kind == "connection"
    assert error.failures[0].found == (found,)


def test_a_wrong_password_is_exit_2(shop: Server) -> None:
    error = refusal(f"postgresql://anna:${{env:PW}}@/postgres?{shop.at}", PW="wrong")
    assert isinstance(error, Misused) and error.kind == "connection"
    assert error.failures[0].found == (f'{shop.socket}: password authentication failed for user "anna"',)


def test_nobody_there_is_exit_4_and_not_waited_for(shop: Server, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    there = {
        f"postgresql://127.0.0.1:{port}/x": (f'server at "127.0.0.1", port {port}: Connection refused',),
        f"postgresql:///x?host={tmp_path}": (f'server on socket "{tmp_path}/.s.PGSQL.5432": {NO_FILE}',),
        "postgresql://nowhere.invalid/x": (f"failed to resolve host 'nowhere.invalid': {NO_NAME}",),
        f"postgresql://postgres@/nope?host={tmp_path},{shop.second}": (
            f'server on socket "{tmp_path}/.s.PGSQL.{shop.port}": {NO_FILE}',
            f'{shop.socket}: database "nope" does not exist',
        ),
    }  # fmt: skip
    for text, found in there.items():
        with pytest.raises(Retryable) as caught:
            open_connection(read(text), timedelta(minutes=10), never)
        assert caught.value.kind == "database_unavailable"
        assert caught.value.failures[0].found == found


def test_a_server_that_does_not_answer_is_exit_4() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        error = refusal(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2")
        assert isinstance(error, Retryable) and error.kind == "database_unavailable"
        assert error.failures[0].found == ("connection timeout expired",)
        assert time.monotonic() - began < 5


def test_the_next_host_is_tried(shop: Server, tmp_path: Path) -> None:
    with opened(f"postgresql://postgres@/postgres?host={tmp_path},{shop.second}") as connection:
        assert connection.info.host == str(shop.folder)


def test_a_server_that_is_full_is_waited_for(shop: Server) -> None:
    """Expected: the second connection of a role that may have one waits, and is made when the first is closed."""
    first = psycopg.connect(shop.url("single"))
    said: list[str] = []

    def on_wait(words: str) -> None:
        said.append(words)
        first.close()

    with open_connection(read(shop.url("single")), timedelta(seconds=20), on_wait) as second:
        assert one(second, "SELECT current_user") == "single"
    assert said[0] == f'{shop.socket}: too many connections for role "single"'


def test_a_server_that_stays_full_is_exit_4_after_the_wait(shop: Server) -> None:
    said: list[str] = []
    with psycopg.connect(shop.url("single")):
        began = time.monotonic()
        with pytest.raises(Retryable) as caught:
            open_connection(read(shop.url("single")), timedelta(seconds=0.5), said.append)
        assert 0.5 <= time.monotonic() - began < 5
    assert caught.value.kind == "database_unavailable"
    assert "too many connections for role" in caught.value.failures[0].found[0]
    assert 2 <= len(said) <= 3


def test_a_server_that_is_shutting_down_is_waited_for() -> None:
    """A smart shutdown waits for the client that is there and lets no other in."""
    with server() as stopping:
        staying = psycopg.connect(stopping.url())
        process = int((stopping.folder / "postmaster.pid").read_text().split()[0])
        said: list[str] = []
        try:
            os.kill(process, signal.SIGTERM)
            with pytest.raises(Retryable) as caught:
                open_connection(read(stopping.url()), timedelta(seconds=1), said.append)
        finally:
            staying.close()
    assert caught.value.failures[0].found[0].endswith(": the database system is shutting down")
    assert said and said[0] == caught.value.failures[0].found[0]


def test_an_old_server_is_refused(shop: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that old are not to be had for a test: the newest is taken for too old."""
    with opened(shop.url()) as connection:
        version = one(connection, "SHOW server_version")
    monkeypatch.setattr(opening, "OLDEST", 990000)
    error = refusal(shop.url())
    assert isinstance(error, Misused) and error.kind == "connection"
    assert error.failures[0].found == (f"PostgreSQL {version}; reslice needs 16 or newer",)


def test_what_comes_from_a_secret_is_not_said(shop: Server, tmp_path: Path) -> None:
    host = str(shop.folder)
    for text, environ in [
        ("${env:URL}", {"URL": f"postgresql://hidden_role@/postgres?host={host}"}),
        ("postgresql://${env:ROLE}@/postgres?host=${env:HOST}", {"ROLE": "hidden_role", "HOST": host}),
        ("postgresql://postgres@/${env:DB}?host=${env:HOST}", {"DB": "hidden_base", "HOST": host}),
        ("postgresql://postgres@/${env:DB}?host=${env:HOST}", {"DB": "hidden_" + "base" * 30, "HOST": host}),
        ("postgresql://postgres@/${env:DB}?host=${env:HOST}", {"DB": "hi", "HOST": host}),
        ("postgresql://${env:HOST}/x", {"HOST": "localhost:9"}),
        ("postgresql:///?host=${env:HOST}", {"HOST": "hidden.invalid"}),
        ("postgresql:///?service=${env:SERVICE}", {"SERVICE": "hidden_service"}),
    ]:
        error = refusal(text, **environ)
        said = everything(error)
        for value in ("hidden", '"hi"', host, "localhost", "127.0.0.1", "::1"):
            assert value not in said, (text, said)
        assert "***" in error.failures[0].found[0]


FORMS = [
    "{0}@/x?host={1}",
    "bob:{0}@{1}/x",
    "bob:{0}@localhost:1/x",
    "/{0}?host={1}",
    "/x?host={1}&user={0}",
    "/x?host={1}/{0}",
]

ATTEMPTS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ATTEMPTS
@given(password=PASSWORDS)
def test_no_part_of_a_password_is_said_by_a_server(shop: Server, password: str) -> None:
    url = f"postgresql://anna:${{env:PW}}@/postgres?{shop.at}"
    error = refusal(url, PW=password)
    said = everything(error) + repr(read(url, PW=password))
    assert not shows_part(said, password)
    assert "password authentication failed" in said


@ATTEMPTS
@given(password=PASSWORDS, form=st.sampled_from(FORMS))
def test_no_part_of_a_password_is_said_of_a_url_that_was_put_in(tmp_path: Path, password: str, form: str) -> None:
    """A password that is written without percent-escapes may be taken for a host, a port, a name or an option."""
    url = f"postgresql://{form.format(password, tmp_path)}"
    try:
        connection = read("${env:URL}", URL=url)
        said = repr(connection)
        open_connection(connection, NOW, never).close()
        raise AssertionError("nothing is there to connect to")
    except contract_connection.Mistaken as error:
        said = "".join(traceback.format_exception(error)) + repr(error.mistakes)
    except ResliceError as error:
        said += everything(error)
    assert not shows_part(said, password), said


def test_another_connection_as_the_callers(shop: Server) -> None:
    url = f"postgresql://anna:{quote(PASSWORD, safe='')}@/postgres?{shop.at}&application_name=theirs"
    with psycopg.connect(url) as mine:
        mine.execute("CREATE TEMPORARY TABLE t (n int)")
        xid = one(mine, "SELECT pg_current_xact_id_if_assigned()")
        with same_parameters(mine) as other:
            assert other.autocommit
            assert one(other, "SELECT current_user") == "anna"
            assert one(other, "SHOW application_name") == "theirs"
            assert other.info.backend_pid != mine.info.backend_pid
            assert one(other, "SELECT to_regclass('pg_temp.t')") is None
        assert mine.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        assert xid is not None and one(mine, "SELECT pg_current_xact_id_if_assigned()") == xid


def test_a_failed_transaction_of_the_caller_stays_failed(shop: Server) -> None:
    with psycopg.connect(shop.url()) as mine:
        with pytest.raises(psycopg.errors.DivisionByZero):
            mine.execute("SELECT 1 / 0")
        same_parameters(mine).close()
        assert mine.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        mine.rollback()


def test_of_several_hosts_the_callers_is_taken(shop: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(f"postgresql://postgres@/postgres?host={tmp_path},{shop.second}") as mine:
        monkeypatch.setenv("PGHOST", str(tmp_path))
        monkeypatch.setenv("PGDATABASE", "nope")
        with same_parameters(mine) as other:
            assert (other.info.host, other.info.dbname) == (str(shop.folder), "postgres")


def test_what_is_no_open_connection_is_refused(shop: Server) -> None:
    closed = psycopg.connect(shop.url())
    closed.close()
    for wrong, found in (("x", "str"), (closed, "it is closed")):
        with pytest.raises(Misused) as caught:
            same_parameters(wrong)  # type: ignore[arg-type]
        assert caught.value.kind == "connection"
        assert caught.value.failures[0].found == (f"not an open connection of psycopg 3: {found}",)


def test_a_caller_whose_password_was_changed_reads_why(shop: Server) -> None:
    shop.run("CREATE ROLE berta LOGIN PASSWORD 'qzjxQZJX'")
    shop.ask_for_passwords("berta")
    with psycopg.connect(f"postgresql://berta:qzjxQZJX@/postgres?{shop.at}") as mine:
        shop.run("ALTER ROLE berta PASSWORD 'another'")
        with pytest.raises(Misused) as caught:
            same_parameters(mine)
    assert 'password authentication failed for user "berta"' in caught.value.failures[0].found[0]
    assert "qzjx" not in "".join(traceback.format_exception(caught.value))


def test_no_proxy_is_none(shop: Server) -> None:
    with opened(shop.url()) as connection:
        assert behind_transaction_pooler(connection, shop.url()) is None


POOLS = [(1, ""), (2, ""), (2, "server_round_robin = 1"), (20, "server_round_robin = 1")]


@pytest.mark.parametrize(("size", "more"), POOLS)
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pool_of_transactions_is_seen(shop: Server, tmp_path: Path, mode: str, size: int, more: str) -> None:
    program = pgbouncer_program()
    with pgbouncer(program, shop, tmp_path, mode, size, more) as url, ExitStack() as stack:
        _warm(url, size, stack)
        with opened(url) as connection:
            seen = behind_transaction_pooler(connection, url)
            assert seen is not None and seen.startswith("a proxy ")
            assert connection.closed or one(connection, "SELECT 1") == 1


@pytest.mark.parametrize(("size", "more"), POOLS)
def test_a_pool_of_sessions_is_fine(shop: Server, tmp_path: Path, size: int, more: str) -> None:
    """Expected also where this client has the last server process there is, and a second would wait for ever."""
    program = pgbouncer_program()
    with pgbouncer(program, shop, tmp_path, "session", size, more) as url, opened(url) as connection:
        began = time.monotonic()
        assert behind_transaction_pooler(connection, url) is None
        assert one(connection, "SELECT 1") == 1
        assert time.monotonic() - began < 5


def test_a_busy_pool_of_transactions_is_seen(shop: Server, tmp_path: Path) -> None:
    """Two other clients run transactions all the time, in a pool of three."""
    program = pgbouncer_program()
    done = threading.Event()

    def busy(url: str) -> None:
        with psycopg.connect(url, prepare_threshold=None) as other:
            while not done.is_set():
                other.execute("SELECT pg_sleep(0.01)")
                other.commit()

    with pgbouncer(program, shop, tmp_path, "transaction", 3) as url:
        others = [threading.Thread(target=busy, args=(url,)) for _ in range(2)]
        for other in others:
            other.start()
        try:
            for _ in range(5):
                with opened(url) as connection:
                    assert behind_transaction_pooler(connection, url) is not None
        finally:
            done.set()
            for other in others:
                other.join()


def _warm(url: str, size: int, stack: ExitStack) -> None:
    """Let the pool have as many server processes as it may, all of them idle."""
    clients = [stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(min(size, 4))]
    threads = [threading.Thread(target=client.execute, args=("SELECT pg_sleep(0.2)",)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
