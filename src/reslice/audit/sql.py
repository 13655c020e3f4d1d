"""A .sql file as an audit reads it."""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.finding import Finding, Sort
from reslice.audit.known import Known
from reslice.audit.rule import Found, Rule, rules
from reslice.audit.script import Script, script_of
from reslice.audit.text import Text
from reslice.audit.writes import writes_of
from reslice.reading import parse


def read_sql(text: Text, dialect: str | None, known: Known) -> tuple[Script, list[tuple[int, str]]]:
    """Return the statements of a SQL file, and what could not be read: where it begins, and why."""
    read = parse.read(text.path, text.text, dialect)
    script = script_of(read, text, known=known)
    unread = [(read.marked.origin(at), why) for at, why in zip(read.unread_at, read.unread, strict=True)]
    return script, unread


def judged(script: Script) -> Iterator[Finding]:
    """Yield what every rule says of a script and of its writes."""
    for rule in rules().values():
        for found in _said(rule, script):
            yield finding(rule, found, script.text)


def _said(rule: Rule, script: Script) -> Iterator[Found]:
    if "script" in rule.checks:
        yield from rule.checks["script"](script)
    if "write" in rule.checks:
        for write in writes_of(script):
            yield from rule.checks["write"](write)


def finding(rule: Rule, found: Found, text: Text) -> Finding:
    """Return what a rule found with the place where it stands."""
    place = text.place(*found.span)
    lines = text.lines(place.line, place.end_line)
    return Finding(place, rule.code, rule.title, found.detail, found.help or rule.help, found.sort, lines)


__all__ = ["Sort", "finding", "judged", "read_sql"]
