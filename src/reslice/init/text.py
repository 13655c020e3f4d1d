"""A draft as text: the lines of a target in `reslice.yml`, and the head of its source; every choice with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reslice.contract import GrainColumn, Method, Unit
from reslice.init.draft import Draft, DraftMeasure
from reslice.layout import escaped

_PLAIN = re.compile(r"[A-Za-z_][\w./ -]*[\w]|[A-Za-z_]", re.ASCII)
_URL = re.compile(r"[a-z]+:///?[\w./-]*\w")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_WIDTH = 116


def scalar(text: str) -> str:
    """Return text as YAML reads it back, in quotes where it has to be."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def new_file(connection: str, draft: Draft) -> str:
    """Return a whole contract file with one target."""
    head = [
        "# Drafted by reslice init. Comments say where a choice comes from; look at each that begins with unsure.",
        "version: 1",
        f"connection: {connection if _URL.fullmatch(connection) else scalar(connection)}",
        "targets:",
    ]
    return "\n".join([*head, *target_lines(draft)]) + "\n"


def target_lines(draft: Draft, *, indent: str = "  ", step: str = "  ") -> list[str]:
    """Return the lines of one target below `targets:`, each behind `indent`."""
    parts = draft.proposal
    body = [
        *_comments(f"unsure: {text}" for text in draft.unsure),
        f"table: {scalar(draft.table)}",
        _with_comment(f"source: {scalar(draft.source_name)}", draft.origin),
        _with_comment(f"grain: [{', '.join(map(_grain, parts.grain))}]", parts.grain_why),
        _with_comment(_slice(draft), parts.slice_why),
        *_measures(parts.measures, step),
    ]
    if parts.stamps:
        body.append("stamps:")
        body += [f"{step}{scalar(stamp.column)}: {stamp.value}" for stamp in parts.stamps]
    if parts.method is not Method.REPLACE_SLICE:
        body.append(_with_comment(f"method: {parts.method}", parts.method_why))
    body += _comments(f"left out: {each.value}; {each.reason}" for each in parts.left_out)
    return [f"{indent}{scalar(draft.name)}:", *(f"{indent}{step}{line}" for line in body)]


def _grain(column: GrainColumn) -> str:
    return f"{{column: {scalar(column.name)}, nulls: allow}}" if column.nulls_allowed else scalar(column.name)


def _slice(draft: Draft) -> str:
    found = draft.proposal.slice
    zone = f", timezone: {scalar(found.timezone)}" if found.timezone != "UTC" or found.unit is Unit.HOUR else ""
    return f"slice: {{column: {scalar(found.column)}, unit: {found.unit}{zone}}}"


def _measures(measures: Sequence[DraftMeasure], step: str) -> list[str]:
    """Return the measures, one per line; an empty mapping where none is left, which the contract's check then names."""
    if not measures:
        return ["measures: {}"]
    return [
        "measures:",
        *(_with_comment(f"{step}{scalar(each.name)}: {options(each)}", each.reason) for each in measures),
    ]


def options(measure: DraftMeasure) -> str:
    """Return the options of a measure as the contract writes them."""
    options = [f"min: {measure.minimum}"] if measure.minimum is not None else []
    options += ["nulls: allow"] if measure.nulls_allowed else []
    options += [f"scale: {measure.scale}"] if measure.scale is not None else []
    return f"{{{', '.join(options)}}}"


def _with_comment(line: str, comment: str) -> str:
    return f"{line}  # {escaped(comment)}" if comment else line


def _comments(texts: Iterable[str]) -> list[str]:
    return [f"# {line}" for text in texts for line in _wrapped(escaped(text))]


def _wrapped(text: str) -> list[str]:
    """Return text in lines of a readable width."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= _WIDTH - 10:
            lines[-1] += f" {word}"
        else:
            lines.append(word if not lines else f"  {word}")
    return lines


def source_text(select: str, head: Sequence[str], unsure: Sequence[str]) -> str:
    """Return a source with what a reader should know above it."""
    comments = [
        f"-- {line}" for text in [*head, *(f"unsure: {each}" for each in unsure)] for line in _wrapped(escaped(text))
    ]
    return "\n".join([*comments, select.strip()]) + "\n"
