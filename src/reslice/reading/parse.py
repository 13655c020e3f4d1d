"""A job's text as statements that sqlglot has read, one by one, so that one it cannot read hides no other.

sqlglot is imported here and in the other modules of the job, which nothing but `init --source` loads.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from reslice.errors import Failure, Misused
from reslice.reading.marks import Marked, marked
from reslice.reading.routines import is_procedure_of_tsql, opened

UNREADABLE = (SqlglotError, ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError)
"""What the parser of another project may end with on a text that is no SQL."""

_CLASS = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
_GOT = re.compile(r" but got <Token [^\n]*>")
"""What the parser says of a part that is not there, in the words of its own classes."""

_TRIED = ("duckdb", "postgres", "snowflake", "bigquery", "databricks", "tsql", "mysql", "redshift", "trino", "oracle")
_FIRST_WORDS = re.compile(
    r"(?i)(?:insert\s+(?:into|overwrite)|bulk\s+insert\s|delete\s+from|delete\s+\w|truncate|merge\s+into|merge\s|create\s|declare\s|set\s"
    r"|begin\b|commit\b|drop\s|go\s*$|exec\s|use\s|select\s|with\s)"
)
_HASH_TABLES = frozenset({"tsql", "fabric"})
"""Dialects in which the name of a temporary table begins with #."""
_BRACKETS = re.compile(
    r"(?im)^[ \t]*(?:go|(?:begin|end)(?:[ \t]+(?:try|catch))?|save[ \t]+tran(?:saction)?[ \t]+\w+"
    r"|set[ \t]+transaction[ \t]+isolation[ \t]+level[ \t]+[a-z ]+)[ \t]*$"
)
"""Lines of T-SQL around statements, which are no statements themselves or change no table."""
_TRANSACTION_MODES = re.compile(
    r"(?is)start\s+transaction(?:[\s,]+(?:isolation|level|read|write|only|committed|uncommitted|repeatable|serializable"
    r"|not|deferrable|with|consistent|snapshot))*"
)
_BEGIN = re.compile(r"(?is)begin(?:\s+(?:work|transaction))?(?:\s+name\s+\w+)?")
_META_COMMAND = re.compile(r"(?im)^[ \t]*\\[a-z!?]+[^\n]*")
"""What psql does itself: settings, output, files that are loaded as they are. None of it is SQL."""
_SLASH = re.compile(r"(?m)(?<=;)(?P<before>\s*\n[ \t]*)/(?=[ \t]*$)")
"""The line by which a client of Oracle runs the block before it."""
_OF_FILES = re.compile(
    r"(?is)(?:with\b.*\binsert|insert)\s+overwrite\s+(?:local\s+)?directory\b.*|load\s+data\b.*|bulk\s+insert\b.*"
)
"""Statements that write files, or load them as they are; not all forms are read."""
_SAVEPOINT = re.compile(r"(?is)(?:savepoint|release(?:\s+savepoint)?|save\s+tran(?:saction)?)\s+[\w\"`]+")


@dataclass(slots=True)
class Script:
    """What a file holds: its statements in order, the dialect they were read in, and what could not be read."""

    name: str
    dialect: str
    marked: Marked
    statements: list[exp.Expr] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """Of each statement, where the text begins that its nodes count their places from, in the marked text."""
    unread: list[str] = field(default_factory=list)
    unread_at: list[int] = field(default_factory=list)
    """Of each text that could not be read, where it begins in the marked text."""
    unsure: list[str] = field(default_factory=list)


def dialects() -> list[str]:
    """Return the names of the dialects that can be read."""
    return sorted(str(each.value) for each in sqlglot.Dialects if each.value)


def check_dialect(name: str, command: str = "init") -> str:
    """Return the dialect of a name that a command was given; Misused[usage] when there is none."""
    known = dialects()
    lowered = {"postgresql": "postgres", "sqlserver": "tsql", "mssql": "tsql"}.get(name.lower(), name.lower())
    if lowered in known:
        return lowered
    near = get_close_matches(lowered, known, n=1)
    found = f"{name} is not one of {', '.join(known)}" + (f"; did you mean {near[0]}?" if near else "")
    failure = Failure("usage", f"--dialect {name}", (found,), f"reslice {command} --help")
    error = Misused(command, [failure], unchanged="nothing was read or written")
    error.meant = (name, near[0]) if near else None
    raise error


OWN = {"duckdb": ("duckdb", "DuckDB"), "postgresql": ("postgres", "PostgreSQL")}
"""Of each engine, its dialect as sqlglot calls it, and its name as people do."""


Marking = Callable[[str, str], Marked]
"""Makes a text, by the lexical rules of a dialect, into one whose placeholders and templates are marked."""


def read(name: str, text: str, dialect: str | None, engine: str = "duckdb", mark: Marking = marked) -> Script:
    """Return the statements of a file, read in `dialect`; where none is given, in the first that reads them all.

    The dialect of the database is tried first.
    """
    if dialect is not None:
        return _read(name, text, check_dialect(dialect), mark)
    own, called = OWN[engine]
    best: Script | None = None
    for tried in (own, *(each for each in _TRIED if each != own)):
        script = _read(name, text, tried, mark, len(best.unread) if best is not None else None)
        if not script.unread:
            if tried != own:
                script.unsure.append(
                    f"dialect: it was read as {tried}, since it is not {called}'s; name it with --dialect"
                )
            return script
        if best is None or len(script.unread) < len(best.unread):
            best = script
    assert best is not None, "several dialects are tried"
    best.unsure.append(f"dialect: no dialect reads all of {name}; name the one it is in:  --dialect NAME")
    return best


def _read(name: str, text: str, dialect: str, mark: Marking, unread_max: int | None = None) -> Script:
    """Return the statements of a text in a dialect; the reading ends early where so many could not be read."""
    script = Script(name, dialect, mark(_without_commands(text, dialect), dialect))
    with quiet():
        for piece in _pieces(script, text):
            if piece.read is None:
                try:
                    piece.read = sqlglot.parse(piece.text, dialect=dialect)
                except UNREADABLE as error:
                    script.unread.append(_unread(error, script, text, piece.start))
                    script.unread_at.append(piece.start)
                    if unread_max is not None and len(script.unread) >= unread_max:
                        break
                    continue
            found = [each for each in piece.read if each is not None]
            if any(isinstance(each, exp.Command) for each in found) and is_procedure_of_tsql(piece.text):
                script.unread.append("the body of a procedure is not read in this dialect")
                script.unread_at.append(piece.start)
                continue
            if dialect in _HASH_TABLES and "#" in piece.text:
                _with_their_hash(found)
            script.statements += found
            script.offsets += [piece.start] * len(found)
    return script


def _without_commands(text: str, dialect: str) -> str:
    """Return a text of the same length without what a client does itself, and with the statements of its routines."""
    if dialect in ("postgres", "redshift"):
        text = _META_COMMAND.sub(lambda found: " " * len(found[0]), text)
    if dialect == "oracle":
        text = _SLASH.sub(lambda found: f"{found['before']} ", text)
    return opened(text, dialect)


def _with_their_hash(statements: Sequence[exp.Expr]) -> None:
    """Let the name of a temporary table begin with its #, as it is another table than the one without."""
    for statement in statements:
        for name in statement.find_all(exp.Identifier):
            for kind, begin in (("temporary", "#"), ("global_", "##")):
                if name.args.get(kind):
                    name.set(kind, None)
                    name.set("this", f"{begin}{name.this}")


@dataclass(slots=True)
class _Piece:
    """A part of a text that is read by itself, where it begins, and what was read in it; None: not yet."""

    start: int
    text: str
    read: list[exp.Expr | None] | None = None


def _pieces(script: Script, source: str) -> Iterator[_Piece]:
    """Yield the statements of a text, which was made from a source.

    It is cut at semicolons, and where one is left out, before the next first word.
    """
    text, dialect = script.marked.text, sqlglot.Dialect.get_or_raise(script.dialect)
    try:
        tokens = dialect.tokenize(text)
    except UNREADABLE as error:
        script.unread.append(_unread(error, script, source, 0))
        script.unread_at.append(0)
        return
    script.unsure += _commas(tokens)
    start = first = 0
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            yield from _without_semicolons(start, text[start : token.start], tokens[first:place], dialect)
            start, first = token.end + 1, place + 1
    yield from _without_semicolons(start, text[start:], tokens[first:], dialect)


def _commas(tokens: Sequence[Any]) -> list[str]:
    """Name each place with two commas in a row: sqlglot reads them as one."""
    doubled = [
        after.line for before, after in pairwise(tokens) if before.token_type is after.token_type is TokenType.COMMA
    ]
    return [f"line {line}: two commas in a row were read as one" for line in dict.fromkeys(doubled)]


def _without_semicolons(start: int, text: str, tokens: list[Any], dialect: sqlglot.Dialect) -> Iterator[_Piece]:
    """Yield a piece as it is when it can be read; else what stands between its lines that begin a statement."""
    if not tokens:
        return
    for token in tokens:  # nodes count their places from where the piece begins
        token.start, token.end = token.start - start, token.end - start
    replacing = _replacing(text, tokens, dialect) or _of_transaction(text, tokens)
    if replacing is not None:
        yield _Piece(start, text, replacing)
        return
    try:
        found = dialect.parser().parse(tokens, text)
    except UNREADABLE:
        found = []
        if _OF_FILES.fullmatch(text[tokens[0].start :]):
            yield _Piece(start, text, [exp.Command(this="FILES")])
            return
    is_whole = bool(found) and not any(isinstance(each, exp.Command) for each in found)
    yield from [_Piece(start, text, found)] if is_whole else _cut(start, text)


def _replacing(text: str, tokens: list[Any], dialect: sqlglot.Dialect) -> list[exp.Expr | None] | None:
    """Return REPLACE INTO, which sqlglot does not read, as the INSERT OR REPLACE that it is; None where it is none."""
    if len(tokens) < 2 or tokens[0].text.upper() != "REPLACE" or not tokens[1].text.upper().startswith("INTO"):
        return None
    same_length = text[: tokens[0].start] + "INSERT " + text[tokens[0].end + 1 :]
    try:
        found = sqlglot.parse(same_length, dialect=dialect)
    except UNREADABLE:
        return None
    for each in found:
        if isinstance(each, exp.Insert):
            each.set("alternative", "replace")
    return found


def _of_transaction(text: str, tokens: list[Any]) -> list[exp.Expr | None] | None:
    """Return a statement of a transaction that not every dialect is read with; None where it is none."""
    own = text[tokens[0].start :].strip()
    if _TRANSACTION_MODES.fullmatch(own) or _BEGIN.fullmatch(own):
        return [exp.Transaction()]
    return [exp.Command(this="SAVEPOINT")] if _SAVEPOINT.fullmatch(own) else None


def _cut(start: int, piece: str) -> Iterator[_Piece]:
    depth, lines = 0, [""]
    for line in piece.splitlines(keepends=True):
        is_first = depth == 0 and _FIRST_WORDS.match(line.strip()) is not None
        if is_first and lines[-1].strip() and not _goes_on(lines[-1], line.strip()):
            lines.append("")
        lines[-1] += line
        depth += line.count("(") - line.count(")")
    for each in lines:
        text = _BRACKETS.sub(lambda found: re.sub(r"\S", " ", found[0]), each)
        if text.strip():
            is_of_files = _OF_FILES.fullmatch(text.strip()) is not None
            yield _Piece(start, text, [exp.Command(this="FILES")] if is_of_files else None)
        start += len(each)


def _goes_on(before: str, line: str) -> bool:
    """Whether a line that could begin a statement goes on with the one before: an INSERT's SELECT, a MERGE's branch."""
    first = before.strip().split(None, 1)[0].lower()
    word = line.split(None, 1)[0].lower()
    if word in ("select", "with"):
        return first in ("insert", "with", "create", "merge", "select", "bulk")
    if first == "with":
        return word in ("insert", "merge", "delete")
    return first == "merge" and word in ("delete", "insert", "set") and "when" in before.lower()


def _unread(error: BaseException, script: Script, source: str, start: int) -> str:
    """Return what keeps a statement that begins at `start` from being read, in one line with the job's own words."""
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        place = f"line {_line(script, source, start, first['line'])}: " if first.get("line") else ""
        near = f", near {first['highlight']}" if first.get("highlight") else ""
        said = _GOT.sub("", _CLASS.sub("something is missing", first.get("description") or "not read"))
        return script.marked.shown(f"{place}{said}{near}")
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text = str(error).splitlines()
    return script.marked.shown(text[0][:200]) if text and text[0] else type(error).__name__


def _line(script: Script, source: str, start: int, number: int) -> int:
    """Return the number in the source of a line of the statement that begins at `start` in the marked text."""
    at = start
    for _ in range(number - 1):
        at = script.marked.text.find("\n", at) + 1 or len(script.marked.text)
    return source.count("\n", 0, script.marked.origin(at)) + 1


@contextmanager
def quiet() -> Iterator[None]:
    """Let sqlglot print nothing: what it says is told as part of the answer."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
