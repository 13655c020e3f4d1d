"""The text and the JSON of doctor: a line per check, what is not ok in capitals with the advice below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reslice.doctor import Diagnosis, Finding, Health
from reslice.layout import counted, escaped, padded, placed, width
from reslice.report import sections

_WORDS = {Health.OK: "ok", Health.ADVICE: "advice", Health.WARNING: "WARNING", Health.WRONG: "WRONG"}
_STATE_WIDTH = max(map(len, _WORDS.values()))
_WELL = "reslice history"
_MOST_SERIOUS = ("other_writers", "part_way_runs", "other_targets", "clock_changes", "current_view", "views")
"""The warnings about figures that may be wrong, those first that surely are; any other comes after these."""


def exit_code(diagnosis: Diagnosis) -> int:
    """Return 1 when something is wrong, and 0 otherwise: a warning is for a person, not for a scheduler."""
    return 0 if diagnosis.is_well else 1


def diagnosis_text(diagnosis: Diagnosis, *, place: str = "") -> str:
    """Return what was found: the database's own checks, then those of each target, and the next command."""
    columns = max(width(check.name) for check in diagnosis.checks)
    parts = [
        [*([escaped(target)] if target is not None else []), *_lines(diagnosis, target, columns, place)]
        for target in dict.fromkeys(check.target for check in diagnosis.checks)
    ]
    return sections([_head(diagnosis)], *parts, [f"next: {placed(next_step(diagnosis), place)}"])


def _head(diagnosis: Diagnosis) -> str:
    """Return how many checks ended how, what is wrong first."""
    wrong, warned, advised, ok = (diagnosis.count(state) for state in reversed(Health))
    words = [f"{wrong} wrong"] if wrong else []
    words += [counted(warned, "warning")] if warned else []
    words += [f"{advised} advice"] if advised else []
    head = "well" if not wrong else "not well"
    return f"{head}: {', '.join([*words, f'{ok} ok'])}; {diagnosis.engine} {diagnosis.version}"


def _lines(diagnosis: Diagnosis, target: str | None, columns: int, place: str) -> Iterator[str]:
    for check in diagnosis.checks:
        if check.target != target:
            continue
        name = padded(check.name.replace("_", " "), columns)
        yield f"  {name}  {_WORDS[check.state]:<{_STATE_WIDTH}}  {escaped(check.found)}"
        if check.next:
            yield f"  {'':<{columns + _STATE_WIDTH + 4}}{placed(escaped(check.next), place)}"


def next_step(diagnosis: Diagnosis) -> str:
    """Return what to do first: about what is wrong, then about the most serious warning; advice may be declined."""
    troubles = [check for check in diagnosis.checks if check.state in (Health.WRONG, Health.WARNING) and check.next]
    return escaped(min(troubles, key=_urgency).next) if troubles else _WELL


def _urgency(check: Finding) -> tuple[bool, int]:
    """Return how soon a check has its turn, the first being the least; of equal ones the first found."""
    is_warning = check.state is Health.WARNING
    serious = _MOST_SERIOUS.index(check.name) if check.name in _MOST_SERIOUS else len(_MOST_SERIOUS)
    return is_warning, serious if is_warning else 0


def diagnosis_json(diagnosis: Diagnosis, *, place: str = "") -> dict[str, Any]:
    """Return what was found as JSON has it."""
    return {
        "schema": "reslice/doctor/1",
        "engine": {"name": diagnosis.engine, "version": diagnosis.version},
        "checks": [_check_value(check, place) for check in diagnosis.checks],
        "error": None,
        "next": placed(next_step(diagnosis), place),
        "exit_code": exit_code(diagnosis),
    }


def _check_value(check: Finding, place: str) -> dict[str, Any]:
    return {
        "target": check.target,
        "name": check.name,
        "state": str(check.state),
        "found": check.found,
        "next": placed(check.next, place),
    }
