"""The command that sets a target up: init."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reslice.cli_commands import Command, json_option
from reslice.cli_session import Session

if TYPE_CHECKING:
    from reslice.contract import Connection, ProjectFile
    from reslice.engines.base import LedgerMade
    from reslice.errors import Misused
    from reslice.init import Initiated
    from reslice.init.job import Job

_UNTOUCHED = "nothing was read or written"
_OTHERS = re.compile(r"[^\w.-]+")
_NO_NAME = re.compile(r"^[^\w]|[^\w.-]")
_FILE_SUFFIXES = (".duckdb", ".ddb", ".db")


@click.command(
    cls=Command,
    examples=(
        "reslice init daily_orders --table daily_orders --connection duckdb:///warehouse.duckdb",
        "reslice init daily_orders --table sales.daily_orders --connection postgresql://loader@db.example/shop",
        "reslice init --source old_job.sql --dialect snowflake",
        "reslice init --ledger --sql --role loader",
    ),
)
@click.argument("target", required=False)
@click.option("--table", metavar="TABLE", help="The table that is there; its columns, keys and rows are read.")
@click.option("--source", metavar="FILE", type=click.Path(path_type=Path), help="A job that fills it today.")
@click.option(
    "--dialect", metavar="NAME", help="The SQL dialect of the job, such as snowflake, where it is not the database's."
)
@click.option("--connection", metavar="URL", help="The database, when there is no contract file yet.")
@click.option("--ledger", "with_ledger", is_flag=True, help="Make the ledger ahead of the first run.")
@click.option("--sql", "with_sql", is_flag=True, help="With --ledger: print its statements, and write nothing.")
@click.option(
    "--role", metavar="NAME", help="With --ledger --sql: who runs, where it is not who connects (PostgreSQL)."
)
@json_option
@click.pass_obj
def init(session: Session, /, **given: Any) -> int:
    """Draft a contract and its source from a table or a job.

    The database is only read. The contract goes into reslice.yml, as a new file or as one more target, and the SELECT
    into sql/TARGET.sql. No file is overwritten. What was not sure is said, in the answer and in the files.
    """
    session.command, session.is_json = "init", given["is_json"]
    _check(given)
    if given["with_ledger"]:
        return _ledger(session, given)
    job = _job(session, given)
    name = given["target"] or _name_of(job.table if job is not None and given["table"] is None else given["table"])
    file = _file(session, given, name)
    if name in file.targets:
        found = f"{file.path.name} has a target {name} already; init overwrites nothing"
        raise _misused(name, "a new target", found, "reslice init --help")
    initiated = _initiated(file, given, name, job)
    from reslice import report_init

    if session.is_json:
        session.say_json(report_init.init_json(initiated, place=session.place))
    else:
        session.say(report_init.init_text(initiated, place=session.place))
    return 0


def _check(given: dict[str, Any]) -> None:
    """Refuse words that do not go together."""
    for name in ("target", "table", "dialect", "connection", "role"):
        if given[name] is not None and not given[name].strip():
            raise click.UsageError(f"{'TARGET' if name == 'target' else f'--{name}'} is empty.")
    if given["target"] is not None and _NO_NAME.search(given["target"]):
        raise _bad_name(given["target"])
    if given["with_ledger"]:
        others = [name for name in ("target", "table", "source", "dialect", "connection") if given[name] is not None]
        if others:
            raise click.UsageError("--ledger stands alone: it makes the ledgers of the targets in reslice.yml.")
        if given["role"] is not None and not given["with_sql"]:
            raise click.UsageError("--role goes with --ledger --sql: the rights of the role are printed.")
        return
    if given["with_sql"] or given["role"] is not None:
        raise click.UsageError("--sql goes with --ledger." if given["with_sql"] else "--role goes with --ledger --sql.")
    if given["table"] is None and given["source"] is None:
        raise click.UsageError("Give --table TABLE, --source FILE, or both.")
    if given["dialect"] is not None and given["source"] is None:
        raise click.UsageError("--dialect goes with --source.")


def _bad_name(name: str) -> Misused:
    from reslice.contract_values import one_line

    found = f"{one_line(name)} holds something else, and the target's name becomes the name of a file"
    asked = "a target's name of letters, digits, _, - and ., which begins with a letter, a digit or _"
    error = _misused("TARGET", asked, found, "reslice init --help")
    error.meant = (name, _plain_name(name))
    return error


def _plain_name(text: str) -> str:
    """Return a name for a target that is like a text."""
    return _OTHERS.sub("_", text).strip("._-") or "target"


def _name_of(table: str | None) -> str:
    """Return the name of a target after the last part of its table's name."""
    return _plain_name((table or "target").rpartition(".")[2].strip('"'))


def _job(session: Session, given: dict[str, Any]) -> Job | None:
    if given["source"] is None:
        return None
    from reslice.init.job import read_job

    return read_job(given["source"], given["dialect"], given["table"], given["target"], _engine(session, given))


def _engine(session: Session, given: dict[str, Any]) -> str:
    """Return which database it is about, as far as that is known yet: a mistake in a connection is told later."""
    from reslice import contract_connection, contract_file

    path = Path(session.config)
    if given["connection"] is None:
        return contract_file.load(path).connection.engine if path.exists() else "duckdb"
    try:
        return contract_connection.read(given["connection"], path.parent, os.environ).engine
    except contract_connection.Mistaken:
        return "duckdb"


def _file(session: Session, given: dict[str, Any], name: str) -> ProjectFile:
    """Return the contract file that is there, or what there is of one: a connection, and no target yet."""
    from reslice import contract_file
    from reslice.contract import ProjectFile

    path = Path(session.config)
    if path.exists():
        file = contract_file.load(path)
        if given["connection"] is not None and _connection(given, path.parent).url != file.connection.url:
            known = f"{path.name} is about {file.connection.shown}"
            raise _misused("--connection", "the connection of the contract file", known, "reslice init --help")
        return file
    if given["connection"] is None:
        raise _no_connection(given, path)
    return ProjectFile(path, _connection(given, path.parent), {})


def _connection(given: dict[str, Any], folder: Path) -> Connection:
    """Return what a URL means; one with a password in it is refused, and not repeated."""
    from reslice import contract_connection

    try:
        return contract_connection.read(given["connection"], folder, os.environ)
    except contract_connection.Mistaken as error:
        after = "reslice init --help"
        if any("password" in mistake for mistake in error.mistakes):
            after = _again(given, connection="${env:RESLICE_URL}")
        elif url := _file_url(given["connection"]):
            after = _again(given, connection=url)
        raise _misused("--connection", "a connection", "; ".join(error.mistakes), after, "connection") from None


def _file_url(text: str) -> str:
    """Return the URL of the database file that a text names; empty when it names none."""
    path = re.sub(r"^duckdb:(?://)?", "", text)
    is_file = path.endswith(_FILE_SUFFIXES) and "://" not in path and "$" not in path
    return f"duckdb:///{path}" if is_file else ""


def _no_connection(given: dict[str, Any], path: Path) -> Exception:
    """Return the error that says how to name the database: the one file of this folder that may be it, if there is."""
    files = sorted(each.name for each in path.parent.glob("*") if each.suffix in (".duckdb", ".ddb", ".db"))
    url = f"duckdb:///{files[0]}" if len(files) == 1 else "duckdb:///FILE"
    here = f"; this folder has {', '.join(files)}" if files else ""
    found = f"there is no {path.name} that names a database, and no --connection{here}"
    asked = "--connection URL, of a file as duckdb:///FILE or of a server as postgresql://HOST/DATABASE"
    return _misused("init", asked, found, _again(given, connection=url))


def _again(given: dict[str, Any], **changed: str) -> str:
    """Return the same command with other options."""
    words = ["reslice init", *([shlex.quote(given["target"])] if given["target"] is not None else [])]
    options = {name: given[name] for name in ("table", "source", "dialect", "connection")} | changed
    words += [f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    return " ".join(words)


def _initiated(file: ProjectFile, given: dict[str, Any], name: str, job: Job | None) -> Initiated:
    from reslice.init import Asked, from_job, from_table
    from reslice.project import Project

    table: str | None = given["table"]
    tables = {target: contract.table for target, contract in file.targets.items()}
    asked = Asked(name, file.path, given["connection"] or "", tables, lambda meant: _again(given, table=meant))
    with Project(file).engine(read_only=True) as engine:
        if job is not None:
            return from_job(engine, asked, job, table)
        assert table is not None, "a table or a job is given"
        return from_table(engine, asked, table)


def _ledger(session: Session, given: dict[str, Any]) -> int:
    """Make the ledgers of the contract's targets, or print how."""
    from reslice import contract_file, report_init
    from reslice.project import Project

    file = contract_file.load(Path(session.config))
    made: list[LedgerMade] = []
    statements: list[str] = []
    warnings: list[str] = []
    note = report_init.LEDGER_NOTES[file.connection.engine]
    if given["with_sql"]:
        statements, warnings = _ledger_script(file, given["role"])
    else:
        with Project(file).engine(read_only=False, on_step=session.hear) as engine:
            found = [engine.ledger.create(each, engine.survey.find(each.table)) for each in file.targets.values()]
        made = report_init.by_schema(found)
    way_on = "reslice init --ledger" if given["with_sql"] and not _has_rights(file) else "reslice doctor"
    for warning in warnings:
        session.warn(warning)
    if session.is_json:
        notes = [note, *warnings]
        session.say_json(report_init.ledger_json(made, statements, notes=notes, way_on=way_on, place=session.place))
    elif given["with_sql"]:
        session.say(report_init.ledger_sql_text(statements, note=note))
    else:
        session.say(report_init.ledger_text(made, way_on=way_on, place=session.place))
    return 0


def _has_rights(file: ProjectFile) -> bool:
    """Whether the database keeps who may do what."""
    return file.connection.engine != "duckdb"


def _ledger_script(file: ProjectFile, role: str | None) -> tuple[list[str], list[str]]:
    """Return the SQL of the ledgers: where the database keeps rights, what is missing and what a role needs.

    Beside it stands what keeps the script from being all that the role needs.
    """
    from reslice.engines.sql import quote
    from reslice.ledger import create_statements
    from reslice.project import Project

    if not _has_rights(file):
        if role is not None:
            raise _misused("--role", "a role of the database", "a DuckDB file has none", "reslice init --ledger --sql")
        schemas = dict.fromkeys(contract.ledger.schema for contract in file.targets.values())
        return [text for schema in schemas for text in create_statements(quote(schema), ())], []
    with Project(file).engine(read_only=True) as engine:
        found = [engine.ledger.script(each, engine.survey.find(each.table), role) for each in file.targets.values()]
    made = dict.fromkeys(text for each in found for text in each.statements)
    warnings = dict.fromkeys(text for each in found for text in each.warnings)
    return [*made, *dict.fromkeys(text for each in found for text in each.grants)], [*warnings]


def _misused(about: str, asked: str, found: str, after: str, kind: str = "usage") -> Misused:
    from reslice.errors import Failure, Misused

    return Misused(about, [Failure(kind, asked, (found,), after)], unchanged=_UNTOUCHED)
