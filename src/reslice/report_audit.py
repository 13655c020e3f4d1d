"""The text and the JSON of `audit` and of `rule`: where, which rule, what was found there, and what to do about it.

    nightly.sql:1:1: RS101 An aggregate is appended: each run adds its rows to daily_orders again, and removes none
      1 | insert into daily_orders
        | ^^^^^^^^^^^^^^^^^^^^^^^^
      help: remove the range that is computed in the same transaction, before the insert

What cannot be decided or read is never counted as safe, and the last lines say so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from reslice.audit.finding import Audited, Finding, Sort, Unparsed
from reslice.audit.rule import Rule
from reslice.errors import Failure, Misused
from reslice.layout import counted, escaped, placed, width
from reslice.report import sections

_EXCERPT_LINES = 3
_EXCERPT_COLUMNS = 110
_PLACES_IN_ERROR = 3
_STYLES = {Sort.FINDING: "1;31", Sort.NOTE: "1;34", Sort.UNKNOWN: "1;33"}
_PLACE, _CARETS, _NOT_READ = "1", "31", "1;33"


def exit_code(found: Audited) -> int:
    """Return what an audit ends with: 1 when a write is unsafe, or a suppression is wrong; 2 when nothing was read."""
    return 2 if found.is_blind else 1 if found.findings else 0


def blind_error(found: Audited, paths: Sequence[str]) -> Misused | None:
    """Return the error for an audit that could read nothing at all; None where it could."""
    if not found.is_blind:
        return None
    places = [f"{each.path}:{each.line}:{each.column}: {each.why}" for each in found.unparsed]
    left = len(places) - _PLACES_IN_ERROR
    more = [f"and {left} more"] if left > 0 else []
    files = counted(len(found.files), "file")
    said = (f"of {files} nothing could be read", *places[:_PLACES_IN_ERROR], *more)
    after = "name the dialect of the files with --dialect, or name other files"
    failure = Failure("nothing_read", "files of which something can be read", said, after)
    return Misused(" ".join(paths), [failure], unchanged="nothing was run or written")


def audit_text(found: Audited, *, place: str = "", colored: bool = False) -> str:
    """Return everything a user reads about an audit; `colored` for a terminal."""
    paint = _Paint(colored=colored)
    said: list[tuple[tuple[object, ...], list[str]]] = [
        ((each.place.path, each.place.line, each.place.column, each.code), _finding_lines(each, paint))
        for each in (*found.findings, *found.notes, *found.unknown)
    ]
    said += [((each.path, each.line, each.column, ""), [_unparsed_line(each, paint)]) for each in found.unparsed]
    return sections(*(lines for _, lines in sorted(said, key=lambda pair: pair[0])), _end(found, place))


class _Paint:
    """Puts text into colors, or leaves it as it is."""

    def __init__(self, *, colored: bool) -> None:
        self.colored = colored

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colored else text


def _finding_lines(finding: Finding, paint: _Paint) -> list[str]:
    at = finding.place
    where = paint(_PLACE, f"{escaped(at.path)}:{at.line}:{at.column}:")
    sort = "" if finding.sort is Sort.FINDING else f"{finding.sort} "
    code = paint(_STYLES[finding.sort], f"{sort}{finding.code}")
    head = f"{where} {code} {finding.title}: {escaped(finding.detail)}"
    return [head, *_excerpt(finding, paint), f"  help: {escaped(finding.help)}"]


def _unparsed_line(unparsed: Unparsed, paint: _Paint) -> str:
    where = paint(_PLACE, f"{escaped(unparsed.path)}:{unparsed.line}:{unparsed.column}:")
    return f"{where} {paint(_NOT_READ, 'not read')}: {escaped(unparsed.why)}"


def _excerpt(finding: Finding, paint: _Paint) -> list[str]:
    """Return the lines of a finding with carets below what it is about; the first ones, where there are many."""
    at = finding.place
    shown = finding.lines[:_EXCERPT_LINES]
    digits = len(str(at.line + len(shown)))
    lines = []
    for number, line in enumerate(shown, at.line):
        first = at.column - 1 if number == at.line else len(line) - len(line.lstrip())
        last = at.end_column if number == at.end_line else len(line.rstrip())
        text, before, marked = _cropped(line, first, last)
        lines.append(f"  {number:>{digits}} | {text}".rstrip())
        if marked:
            lines.append(f"  {'':>{digits}} | {'':>{before}}{paint(_CARETS, '^' * marked)}")
    if len(finding.lines) > len(shown):
        lines.append(f"  {'':>{digits}} | … to line {at.end_line}")
    return lines


def _cropped(line: str, first: int, last: int) -> tuple[str, int, int]:
    """Return a line as it fits, the columns before what is marked in it, and how many columns are marked."""
    begin = max(0, first - _EXCERPT_COLUMNS // 2) if len(line) > _EXCERPT_COLUMNS else 0
    end = begin + _EXCERPT_COLUMNS
    before, marked, after = (
        escaped(each.replace("\t", " ")) for each in (line[begin:first], line[first : min(last, end)], line[last:end])
    )
    head = "…" if begin else ""
    tail = "…" if len(line) > end else ""
    return f"{head}{before}{marked}{after}{tail}", width(head + before), width(marked)


def _end(found: Audited, place: str) -> list[str]:
    """Return the sum of an answer and the next commands."""
    nothing = "nothing could be read" if found.is_blind else "no finding"
    parts = [counted(len(found.findings), "finding") if found.findings else nothing]
    parts += [counted(len(found.notes), "note")] if found.notes else []
    lines = [f"{counted(len(found.files), 'file')}: {', '.join(parts)}"]
    doubts = [
        *([f"{counted(len(found.unknown), 'write')} that reading cannot decide"] if found.unknown else []),
        *([f"{counted(len(found.unparsed), 'place')} that could not be read"] if found.unparsed else []),
    ]
    lines += [f"not counted as safe: {', '.join(doubts)}"] if doubts else []
    lines += [f"suppressed: {counted(len(found.suppressed), 'finding')}"] if found.suppressed else []
    if found.guessed:
        guesses = ", ".join(f"{name} in {counted(count, 'file')}" for name, count in sorted(found.guessed))
        lines.append(f"dialect: a guess ({guesses}); --dialect NAME says it")
    lines += [f"way out: {placed(command, place)}" for command in way_out(found)[:1]]
    return [*lines, f"next: {next_after(found)}"]


def next_after(found: Audited) -> str:
    """Return the command that explains the first thing that was found, or lists what is looked for."""
    first = next(iter((*found.findings, *found.unknown, *found.notes)), None)
    return "reslice rule" if first is None else f"reslice rule {first.code}"


def way_out(found: Audited) -> list[str]:
    """Return the commands that draft a contract from a job whose write is unsafe, each once."""
    commands = [
        f"reslice init {shlex.quote(each.table)} --source {shlex.quote(each.place.path)}"
        for each in found.findings
        if each.table and each.place.path.lower().endswith(".sql")
    ]
    return [*dict.fromkeys(commands)]


def audit_json(found: Audited | None, *, place: str = "") -> dict[str, Any]:
    """Return an audit as JSON; without one, the same fields with nothing in them."""
    empty = found is None
    found = found if found is not None else Audited((), (), (), (), ())
    return {
        "schema": "reslice/audit/1",
        **found_json(found),
        "error": None,
        "next": "" if empty else placed(next_after(found), place),
        "exit_code": exit_code(found),
    }


def found_json(found: Audited) -> dict[str, Any]:
    """Return what an audit found, as JSON, without how it ended."""
    return {
        "files": len(found.files),
        "findings": [*map(finding_value, found.findings)],
        "notes": [*map(finding_value, found.notes)],
        "unknown": [*map(finding_value, found.unknown)],
        "unparsed": [
            {"path": each.path, "line": each.line, "column": each.column, "why": each.why} for each in found.unparsed
        ],
        "suppressed": [
            finding_value(each) | {"sort": str(each.sort), "reason": each.reason} for each in found.suppressed
        ],
        "dialects_guessed": dict(sorted(found.guessed)),
    }


def finding_value(finding: Finding) -> dict[str, Any]:
    """Return one thing that was found, as JSON."""
    at = finding.place
    return {
        "path": at.path,
        "line": at.line,
        "column": at.column,
        "end_line": at.end_line,
        "end_column": at.end_column,
        "code": finding.code,
        "title": finding.title,
        "detail": finding.detail,
        "help": finding.help,
        "table": finding.table or None,
    }


def github_lines(found: Audited) -> str:
    """Return what was found as commands of GitHub Actions, which puts each beside its line in a review."""
    lines = [_github("error", each) for each in found.findings]
    lines += [_github("warning", each) for each in found.unknown]
    lines += [_github("notice", each) for each in found.notes]
    lines += [
        f"::warning file={_property(each.path)},line={each.line},col={each.column},title=not read::{_data(each.why)}"
        for each in found.unparsed
    ]
    return "\n".join([*lines, *_end(found, "")])


def _github(level: str, finding: Finding) -> str:
    at = finding.place
    place = f"file={_property(at.path)},line={at.line},endLine={at.end_line},col={at.column}"
    if at.line == at.end_line:
        place += f",endColumn={at.end_column}"
    title = _property(f"{finding.code} {finding.title}")
    return f"::{level} {place},title={title}::{_data(f'{finding.detail}; {finding.help}')}"


def _data(text: str) -> str:
    """Return text as the message of a command of GitHub Actions."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return text as a property of a command of GitHub Actions."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# Rules.


def rules_text(found: Sequence[Rule]) -> str:
    """Return the list of the rules."""
    return sections([f"{rule.code}  {rule.title}" for rule in found], [f"next: reslice rule {found[0].code}"])


def rule_text(rule: Rule, *, colored: bool = False) -> str:
    """Return the page of a rule."""
    paint = _Paint(colored=colored)
    head = [paint(_PLACE, f"{rule.code}: {rule.title}")]
    parts: list[Iterable[str]] = [head, rule.why.splitlines()]
    for example in rule.examples:
        parts.append([f"{'Bad' if example.is_bad else 'Good'} ({example.kind}):"])
        parts.append([f"    {line}".rstrip() for line in example.text.rstrip("\n").splitlines()])
    parts.append([f"What to do: {rule.help}."])
    return sections(*map(list, parts))


def rules_json(found: Sequence[Rule], *, way_on: str = "") -> dict[str, Any]:
    """Return rules as JSON."""
    return {
        "schema": "reslice/rule/1",
        "rules": [
            {
                "code": rule.code,
                "title": rule.title,
                "why": rule.why,
                "examples": [{"bad": each.is_bad, "kind": each.kind, "text": each.text} for each in rule.examples],
                "help": rule.help,
            }
            for rule in found
        ],
        "error": None,
        "next": way_on,
        "exit_code": 0,
    }
