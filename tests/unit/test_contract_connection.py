"""Where the database is, secrets that are put in, and that none of them is ever shown."""

from __future__ import annotations

import json
import pprint
import traceback
from pathlib import Path

import pytest
from tests.unit.contract_texts import changed, loaded, write_sql

from reslice import contract_connection
from reslice.contract import ProjectFile
from reslice.contract_file import load
from reslice.errors import Misused


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_sql(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("duckdb:///a.duckdb", "a.duckdb"),
        ("duckdb:///data/a b.duckdb", "data/a b.duckdb"),
        ("duckdb:///a%20b%3F%25.duckdb", "a b?%.duckdb"),
        ("duckdb:///größe/データ.duckdb", "größe/データ.duckdb"),
        ("duckdb:///../a#b.duckdb", "../a#b.duckdb"),
        ("DuckDB:///a.duckdb", "a.duckdb"),
    ],
)
def test_a_relative_database_is_beside_the_contract(folder: Path, url: str, path: str) -> None:
    (folder / "reslice.yml").write_text(changed("duckdb:///retail.duckdb", json.dumps(url, ensure_ascii=False)))
    connection = load(folder / "reslice.yml").connection
    assert (connection.engine, connection.path, connection.shown) == ("duckdb", folder / path, url)


def test_an_absolute_database_and_one_in_memory() -> None:
    assert loaded(changed("duckdb:///retail", "duckdb:////data/retail")).connection.path == Path("/data/retail.duckdb")
    assert loaded(changed("duckdb:///retail.duckdb", '"duckdb:///:memory:"')).connection.path is None


SECRET = "s3cr3t-Zq"


def everything_said(project: ProjectFile) -> str:
    return (
        f"{project} {project!r} {pprint.pformat(project)} {project.connection.shown} {project.targets['daily'].lines}"
    )


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_secrets_are_put_in_and_never_shown(folder: Path, ending: str) -> None:
    (folder / "name.txt").write_text(f"{SECRET}2{ending}", newline="")
    text = changed("duckdb:///retail.duckdb", '"duckdb:///${env:DIR}/${file:name.txt}.duckdb"')
    project = loaded(text, {"DIR": SECRET})
    assert project.connection.path is not None
    assert project.connection.path.parts[-2:] == (SECRET, f"{SECRET}2.duckdb")
    assert project.connection.shown == "duckdb:///${env:DIR}/${file:name.txt}.duckdb"
    assert SECRET not in everything_said(project)


@pytest.mark.parametrize(
    "value",
    [
        f"postgresql://u:{SECRET}@h/db?sslmod=require",
        f"oracle{SECRET}://u@h",
        SECRET,
        f"duckdb://{SECRET}",
        f"duckdb:///x?token={SECRET}",
        f"duckdb:///{SECRET}%FF",
        f"duckdb:///{SECRET}/",
        "",
    ],
)
def test_a_broken_secret_is_not_in_the_message(value: str) -> None:
    Path("reslice.yml").write_text(changed("duckdb:///retail.duckdb", '"${env:RESLICE_URL}"'))
    with pytest.raises(Misused) as caught:
        load("reslice.yml", environ={"RESLICE_URL": value})
    error = caught.value
    said = "".join(traceback.format_exception(error)) + repr(error) + repr(error.failures) + error.next
    assert SECRET not in said
    assert error.failures[0].found[0].startswith("reslice.yml:2:13  connection: ")


@pytest.mark.parametrize(
    ("text", "shown", "literal"),
    [
        ("postgresql://u:hunter2@h/db", "postgresql://u:***@h/db", True),
        ("postgresql://u:hun/ter@2@h/db", "postgresql://u:***@h/db", True),
        ("postgresql://:hunter2@h/db", "postgresql://:***@h/db", True),
        ("postgresql://u:@h/db", "postgresql://u:@h/db", False),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db", False),
        ("postgresql://h:5432/db", "postgresql://h:5432/db", False),
        ("postgresql://u:hun?ter2@h/db", "postgresql://u:***@h/db", True),
        ("postgresql://u:hun?ter@2@h/db?x=y", "postgresql://u:***@h/db?x=y", True),
        ("postgresql://h/db?pass%77ord=hunter2", "postgresql://h/db?pass%77ord=***", True),
        ("postgresql://h/db?password=hunter2#;x", "postgresql://h/db?password=***", True),
        ("postgresql://h/db?password=${env:T}#;x&y=z", "postgresql://h/db?password=***&y=z", False),
        ("postgresql://h/db?scram_client_key=hunter2", "postgresql://h/db?scram_client_key=***", True),
        ("postgresql://h/db?sslkey=/etc/k.pem&sslcert=/c", "postgresql://h/db?sslkey=***&sslcert=/c", False),
        ("postgresql://h/db?passfile=/etc/pass", "postgresql://h/db?passfile=/etc/pass", False),
        ("postgresql:///?service=shop", "postgresql:///?service=shop", False),
        ("postgresql://u:${env:PW}@h/db", "postgresql://u:***@h/db", False),
        ("postgresql://${env:USER}@h/db", "postgresql://${env:USER}@h/db", False),
        ("postgresql://${file:u}:${file:p}@${env:H}/db", "postgresql://${file:u}:***@${env:H}/db", False),
        ("postgresql://h/db?password=hunter2&x=1", "postgresql://h/db?password=***&x=1", True),
        ("postgresql://h/db?sslmode=on&SSLPassword=hunter2", "postgresql://h/db?sslmode=on&SSLPassword=***", True),
        ("postgresql://h/db?my_token=${env:T}", "postgresql://h/db?my_token=***", False),
        ("postgresql://h/db?client_secret=&x=y", "postgresql://h/db?client_secret=&x=y", False),
        ("${env:RESLICE_URL}", "${env:RESLICE_URL}", False),
        ("duckdb:///a@b:c.duckdb", "duckdb:///a@b:c.duckdb", False),
    ],
)
def test_passwords_are_masked_and_literal_ones_are_mistakes(text: str, shown: str, literal: bool) -> None:
    assert contract_connection.masked(text) == shown
    try:
        loaded(changed("duckdb:///retail.duckdb", json.dumps(text)))
        found = ""
    except Misused as error:
        found = " ".join(error.failures[0].found)
    assert ("a password is written out" in found) == literal
    assert "hunter2" not in found


@pytest.mark.parametrize(
    "text",
    [
        changed("connection:", "conection:", changed("duckdb:///retail.duckdb", f"postgresql://u:{SECRET}@h/db")),
        changed("duckdb:///retail.duckdb", f"postgresql://u:{SECRET}@h/db: oops"),
        changed("duckdb:///retail.duckdb", f"'postgresql://u:{SECRET}@h/db"),
        changed("duckdb:///retail.duckdb", f"[postgresql://u:{SECRET}@h/db]"),
        changed("table: daily_orders", f"postgresql://u:{SECRET}@h/db: x"),
        changed("unit: day", f'unit: "postgresql://u:{SECRET}@h/db"'),
    ],
)
def test_a_misplaced_password_is_not_repeated(text: str) -> None:
    Path("reslice.yml").write_text(text)
    with pytest.raises(Misused) as caught:
        load("reslice.yml", environ={})
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(caught.value.failures)
