"""Comments by which somebody says that a finding is right as it is, and why.

    -- reslice: ignore RS101 the table is an event log, and the loader gives each batch once

In SQL after `--`, in Python and YAML after `#`, in a template within `{# … #}`. Such a comment is about the statement
that stands on its line; where it stands alone on a line, about the statement that comes next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reslice.audit.finding import Finding, Sort
from reslice.audit.rule import Rule, rules
from reslice.audit.text import Text

_COMMENT = re.compile(
    r"""(?P<begin> -- | \# | /\* | \{\#-? ) [ \t]* reslice: [ \t]* ignore\b [ \t:]*
        (?P<codes> RS\d+ (?: [ \t]* , [ \t]* RS\d+ )* )? (?P<reason> [^\n]* )""",
    re.VERBOSE | re.IGNORECASE,
)
_END = re.compile(r"-?#\}|\*/")
_NO_CODE = re.compile(r"\s*(?:--|#|/\*|\{#|\*/|\*\s|$)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One such comment.

    `own_line` is where it stands, `line` the one that it is about; `unused` are its codes for which nothing was found.
    """

    span: tuple[int, int]
    own_line: int
    line: int
    codes: tuple[str, ...]
    reason: str
    unused: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """Its codes that no rule has."""
        return tuple(code for code in self.codes if code not in rules())


def suppressions(text: Text) -> Iterator[Suppression]:
    """Yield the comments of a file that suppress something."""
    next_lines: list[int] = []
    for found in _COMMENT.finditer(text.text):
        line = text.line_of(found.start())
        before = text.text[text.text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.count("'") % 2 or before.endswith(("`", '"')):
            continue  # it stands in a string, or is quoted as an example
        codes = tuple(dict.fromkeys(code.strip().upper() for code in (found["codes"] or "").split(",") if code.strip()))
        next_lines = next_lines or _next_lines(text)
        about = line if before.strip() else next_lines[line]
        end = _END.search(text.text, found.start("reason"), found.end())
        stop = end.start() if end is not None else found.end()
        reason = text.text[found.start("reason") : stop].strip(" \t:-")
        yield Suppression((found.start(), end.end() if end is not None else stop), line, about, codes, reason)


def _next_lines(text: Text) -> list[int]:
    """Return for each line, by its number, that of the first line after it that is neither empty nor a comment.

    It is the line itself where there is none.
    """
    lines = ["", *text.text.split("\n")]
    found = [*range(len(lines))]
    following = 0
    for number in range(len(lines) - 1, 0, -1):
        found[number] = following or number
        if not _NO_CODE.match(lines[number]):
            following = number
    return found


def applied(text: Text, findings: Sequence[Finding], *, is_read: bool) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of a file that hold, with those about its suppressions, and those that are suppressed.

    `is_read` says that all of the file was read: only then is a suppression without effect a finding.
    """
    comments = list(suppressions(text))
    kept, suppressed = [], []
    used: set[tuple[Suppression, str]] = set()
    by_line = _by_line(comments)
    for found in findings:
        about = _about(found, by_line) if comments else []
        used |= {(each, found.code) for each in about}
        if about:
            suppressed.append(replace(found, reason=about[0].reason))
        else:
            kept.append(found)
    for each in comments:
        unused = tuple(code for code in each.codes if (each, code) not in used and code not in each.unknown)
        kept += _judged(text, replace(each, unused=unused if is_read else ()))
    return kept, suppressed


def _by_line(comments: Sequence[Suppression]) -> dict[int, list[Suppression]]:
    """Return comments by each line at which they take something away."""
    found: dict[int, list[Suppression]] = {}
    for each in comments:
        for line in {each.line, each.own_line}:
            found.setdefault(line, []).append(each)
    return found


def _about(finding: Finding, by_line: Mapping[int, Sequence[Suppression]]) -> list[Suppression]:
    """Return the comments that are about a finding: on a line of it, or on the first one of its statement."""
    first = min(finding.begins or finding.place.line, finding.place.line)
    near = [each for line in range(first, finding.place.end_line + 1) for each in by_line.get(line, ())]
    return [each for each in dict.fromkeys(near) if finding.code in each.codes]


def _judged(text: Text, comment: Suppression) -> Iterator[Finding]:
    for rule in rules().values():
        for found in rule.checks["suppression"](comment) if "suppression" in rule.checks else ():
            yield _finding(rule, found.span, found.detail, text)


def _finding(rule: Rule, span: tuple[int, int], detail: str, text: Text) -> Finding:
    place = text.place(*span)
    lines = text.lines(place.line, place.end_line)
    return Finding(place, rule.code, rule.title, detail, rule.help, Sort.FINDING, lines)
