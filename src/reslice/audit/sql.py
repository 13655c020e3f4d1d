"""A .sql file as an audit reads it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from reslice.audit.dialects import dialect_for
from reslice.audit.files import Source, text_of
from reslice.audit.finding import Finding, Sort, Unparsed
from reslice.audit.known import Known, Table, declared
from reslice.audit.reader import Answer, within_limits
from reslice.audit.rule import Found, Rule, rules
from reslice.audit.script import Script, script_of
from reslice.audit.text import Text
from reslice.audit.writes import writes_of
from reslice.reading import parse
from reslice.reading.routines import only_defined

DECLARATION = re.compile(
    r"(?i)\b(?:create\b[^;(]{0,40}\btable\b(?:(?!\bas\b)[^;(]){1,160}\(|create\s+unique\b|alter\s+table\b)[^;]*;?"
)
"""What a statement looks like that declares a table, or a key of one; others look so as well."""


def answer(source: Source, dialect: str | None, known: Known) -> Answer:
    """Return what a SQL file says; without a dialect it is read in that of its folder, or in one that fits."""
    text = text_of(source.path)
    if isinstance(text, Unparsed):
        return Answer(unparsed=(text,), was_read=False)
    return within_limits(text, partial(_answer, text, dialect or dialect_for(source.path), known))


def _answer(text: Text, dialect: str | None, known: Known) -> Answer:
    script, unread = read_sql(text, dialect, known)
    guessed = script.dialect if dialect is None else ""
    findings, was_read = tuple(_noted(judged(script), text)), bool(script.statements) or not unread
    return Answer((text,), findings, tuple(unparsed(text, unread)), guessed, was_read)


def _noted(findings: Iterator[Finding], text: Text) -> Iterator[Finding]:
    """Yield findings; those in a routine that the file only makes, and does not call, are notes."""
    bodies = [(name, text.place(begin, end)) for name, begin, end in only_defined(text.text)]
    for each in findings:
        at = (each.place.line, each.place.column)
        inside = (name for name, body in bodies if (body.line, body.column) <= at <= (body.end_line, body.end_column))
        name = next(inside, "") if each.sort is Sort.FINDING else ""
        yield replace(each, sort=Sort.NOTE, detail=f"{each.detail}, when {name} is called") if name else each


def tables_in(source: Source, dialect: str | None) -> dict[str, Table]:
    """Return the tables that a SQL file declares; none where it cannot be read."""
    text = text_of(source.path)
    found: dict[str, Table] = {}

    def read(text: Text) -> Answer:
        named = dialect or dialect_for(source.path)
        declarations = "\n;\n".join(each[0] for each in DECLARATION.finditer(text.text))
        script, unread = read_sql(Text(text.path, declarations), named, {})
        if unread:  # such as a comment that looks like one
            script, _ = read_sql(text, named, {})
        found.update(declared([each.node for each in script.statements], script.dialect))
        return Answer()

    if isinstance(text, Text):
        within_limits(text, partial(read, text))
    return found


def read_sql(text: Text, dialect: str | None, known: Known) -> tuple[Script, list[tuple[int, str]]]:
    """Return the statements of a SQL file, and what could not be read: where it begins, and why."""
    read = parse.read(text.path, text.text, dialect)
    script = script_of(read, text, known=known)
    script.is_guessed = dialect is None
    unread = [(read.marked.origin(at), why) for at, why in zip(read.unread_at, read.unread, strict=True)]
    return script, unread


def unparsed(text: Text, unread: list[tuple[int, str]]) -> Iterator[Unparsed]:
    """Yield what could not be read with the place where it begins: its first character that is no space."""
    for at, why in unread:
        begin = len(text.text) - len(text.text[at:].lstrip())
        place = text.place(begin, begin)
        yield Unparsed(place.path, place.line, place.column, why)


def judged(script: Script) -> Iterator[Finding]:
    """Yield what every rule says of a script and of its writes."""
    writes = writes_of(script)
    begins = sorted(script.begin(each)[0] for each in script.statements)

    def line(found: Found) -> int:
        """Return the line on which the statement begins that was found something in."""
        place = bisect_right(begins, found.span[0]) - 1
        return script.text.line_of(begins[place]) if place >= 0 else 0

    for rule in rules().values():
        for found in rule.checks["script"](script) if "script" in rule.checks else ():
            yield finding(rule, found, script.text, begins=line(found))
        for write in writes if "write" in rule.checks else ():
            for found in rule.checks["write"](write):
                told = replace(found, detail=script.marked.shown(found.detail))
                table = script.marked.shown(write.table)
                yield finding(rule, told, script.text, table=table, begins=line(found))


def finding(rule: Rule, found: Found, text: Text, *, table: str = "", begins: int = 0) -> Finding:
    """Return what a rule found with the place where it stands."""
    place = text.place(*found.span)
    lines = text.lines(place.line, place.end_line)
    said = found.help or rule.help
    return Finding(place, rule.code, rule.title, found.detail, said, found.sort, lines, table, begins)


__all__ = ["Sort", "answer", "finding", "judged", "read_sql", "tables_in", "unparsed"]
