"""Comments by which somebody says that a finding is right as it is, and why.

    -- reslice: ignore RS101 the table is an event log, and the loader gives each batch once

In SQL after `--`, in Python and YAML after `#`, in a template within `{# … #}`. Such a comment is about the statement
that stands on its line; where it stands alone on a line, about the statement that comes next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    """One such comment. `line` is the one that it is about; `unused` are its codes for which nothing was found."""

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

    def is_about(self, found: Finding) -> bool:
        """Whether something that was found stands where the comment points to."""
        first = min(found.begins or found.place.line, found.place.line)
        lines = (self.line, self.own_line)
        return found.code in self.codes and any(first <= line <= found.place.end_line for line in lines)


def suppressions(text: Text) -> Iterator[Suppression]:
    """Yield the comments of a file that suppress something."""
    for found in _COMMENT.finditer(text.text):
        line = text.line_of(found.start())
        before = text.text[text.text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.count("'") % 2 or before.endswith(("`", '"')):
            continue  # it stands in a string, or is quoted as an example
        codes = tuple(dict.fromkeys(code.strip().upper() for code in (found["codes"] or "").split(",") if code.strip()))
        about = line if before.strip() else _next_line(text, line)
        end = _END.search(text.text, found.start("reason"), found.end())
        stop = end.start() if end is not None else found.end()
        reason = text.text[found.start("reason") : stop].strip(" \t:-")
        yield Suppression((found.start(), end.end() if end is not None else stop), line, about, codes, reason)


def _next_line(text: Text, line: int) -> int:
    """Return the number of the first line after one that is neither empty nor a comment."""
    count = text.line_of(len(text.text))
    for number in range(line + 1, count + 1):
        if not _NO_CODE.match(text.lines(number, number)[0]):
            return number
    return line


def applied(text: Text, findings: Sequence[Finding], *, is_read: bool) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of a file that hold, with those about its suppressions, and those that are suppressed.

    `is_read` says that all of the file was read: only then is a suppression without effect a finding.
    """
    comments = list(suppressions(text))
    kept, suppressed = [], []
    used: set[tuple[Suppression, str]] = set()
    for found in findings:
        about = [each for each in comments if each.is_about(found)]
        used |= {(each, found.code) for each in about}
        if about:
            suppressed.append(replace(found, reason=about[0].reason))
        else:
            kept.append(found)
    for each in comments:
        unused = tuple(code for code in each.codes if (each, code) not in used and code not in each.unknown)
        kept += _judged(text, replace(each, unused=unused if is_read else ()))
    return kept, suppressed


def _judged(text: Text, comment: Suppression) -> Iterator[Finding]:
    for rule in rules().values():
        for found in rule.checks["suppression"](comment) if "suppression" in rule.checks else ():
            yield _finding(rule, found.span, found.detail, text)


def _finding(rule: Rule, span: tuple[int, int], detail: str, text: Text) -> Finding:
    place = text.place(*span)
    lines = text.lines(place.line, place.end_line)
    return Finding(place, rule.code, rule.title, detail, rule.help, Sort.FINDING, lines)
