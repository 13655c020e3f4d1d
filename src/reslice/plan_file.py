"""A plan as a file, to be reviewed by one person and run by another: `plan --out FILE`, then `run FILE`.

It holds what was compared and what would come of it, as fingerprints, so that running it publishes exactly that or
refuses. It holds no rows, no connection and no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from reslice import __version__
from reslice.contract import Action, Contract, Unit
from reslice.errors import Failure, Misused
from reslice.values import Counts, Fingerprint, Number, Run, Total

SCHEMA = "reslice/plan-file/1"
_SIZE_LIMIT = 10_000_000
"""Bytes; a plan file has no rows, so a larger one is another thing."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What a plan compared and found. `guards` fired, and running the file consents to them."""

    target: str
    table: str
    scope_text: str
    unit: Unit
    zone: str
    contract_digest: str
    base: Fingerprint
    staged: Fingerprint
    columns: tuple[str, ...]
    guards: tuple[str, ...]
    counts: Counts
    totals: Mapping[str, Total]
    tool_version: str
    created_at: datetime

    @classmethod
    def read(cls, path: str | Path) -> PlanFile:
        """Return the plan of a file; Misused[plan_unreadable] when reslice did not write it."""
        return read(Path(path))

    def write(self, path: str | Path) -> None:
        """Make `path` hold the plan, wholly or not at all; Misused[usage] when something else is there."""
        write(Path(path), self)


def of(run: Run, contract: Contract, *, created_at: datetime | None = None) -> PlanFile:
    """Return the plan file of a plan that compared something; it is dated now unless told otherwise."""
    assert run.diff is not None, "a plan without an error has a diff"
    return PlanFile(
        target=run.target,
        table=run.table,
        scope_text=run.scope.text,
        unit=run.scope.unit,
        zone=run.scope.zone,
        contract_digest=contract.digest,
        base=run.diff.base,
        staged=run.diff.staged,
        columns=run.diff.columns,
        guards=tuple(guard.name for guard in run.guards if guard.fired and guard.action is Action.STOP),
        counts=run.diff.counts,
        totals=dict(run.diff.totals),
        tool_version=__version__,
        created_at=created_at or datetime.now(UTC),
    )


def write(path: Path, plan: PlanFile) -> None:
    """Make `path` hold the plan, wholly or not at all. A file that is no plan file is not overwritten.

    Raises Misused `usage` when it cannot be written there.
    """
    if os.path.lexists(path) and not is_plan_file(path):
        _cannot_write(path, "a file that reslice did not write is there; it was not overwritten")
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(json.dumps(_to_json(plan), indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        _cannot_write(path, error.strerror or str(error), error)


def is_plan_file(path: Path) -> bool:
    """Whether the file says that it is a plan file of reslice, of any version."""
    try:
        value = _load(path)
    except (OSError, ValueError):
        return False
    return isinstance(value, dict) and str(value.get("schema", "")).startswith(SCHEMA.rpartition("/")[0] + "/")


def read(path: Path) -> PlanFile:
    """Return the plan that `write` wrote; raises Misused `plan_unreadable` for anything else."""
    try:
        value = _load(path)
    except OSError as error:
        _unreadable(path, f"it cannot be read: {error.strerror or error}", error)
    except ValueError as error:
        _unreadable(path, f"it is not JSON: {error}", error)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        _unreadable(path, f"it says schema {found!r}" if found else "it has no schema")
    try:
        return _from_json(value)
    except _FieldError as error:
        _unreadable(path, str(error), error)


def _load(path: Path) -> Any:
    """Read JSON; ValueError when it is none. Deep nesting and long numbers are none."""
    with path.open("rb") as file:
        data = file.read(_SIZE_LIMIT + 1)
    if len(data) > _SIZE_LIMIT:
        raise ValueError(f"it is larger than {_SIZE_LIMIT} bytes")
    try:
        return json.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _to_json(plan: PlanFile) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "target": plan.target,
        "table": plan.table,
        "range": plan.scope_text,
        "unit": str(plan.unit),
        "timezone": plan.zone,
        "contract_digest": plan.contract_digest,
        "fingerprint": {"base": str(plan.base), "staged": str(plan.staged), "columns": [*plan.columns]},
        "guards": [*plan.guards],
        "diff": {
            "added": plan.counts.added,
            "changed": plan.counts.changed,
            "removed": plan.counts.removed,
            "unchanged": plan.counts.unchanged,
        },
        "totals": {
            name: {"before": _number_out(total.before), "after": _number_out(total.after)}
            for name, total in plan.totals.items()
        },
        "tool_version": plan.tool_version,
        "created_at": plan.created_at.astimezone(UTC).isoformat(),
    }


def _number_out(value: Number | None) -> int | str | None:
    """Return a number as JSON keeps it exactly: integers as they are, decimals as text."""
    return format(value, "f") if isinstance(value, Decimal) else value


class _FieldError(ValueError):
    """A field of a plan file is missing or is not what it should be."""


def _from_json(value: Mapping[str, Any]) -> PlanFile:
    prints = _field(value, "fingerprint", _mapping)
    counts = _field(value, "diff", _mapping)
    return PlanFile(
        target=_field(value, "target", _text),
        table=_field(value, "table", _text),
        scope_text=_field(value, "range", _text),
        unit=_field(value, "unit", lambda text: Unit(_text(text))),
        zone=_field(value, "timezone", _text),
        contract_digest=_field(value, "contract_digest", _text),
        base=_field(prints, "base", lambda text: Fingerprint.parse(_text(text))),
        staged=_field(prints, "staged", lambda text: Fingerprint.parse(_text(text))),
        columns=_field(prints, "columns", _texts),
        guards=_field(value, "guards", _texts),
        counts=Counts(*(_field(counts, name, _whole) for name in ("added", "changed", "removed", "unchanged"))),
        totals=_field(value, "totals", _totals),
        tool_version=_field(value, "tool_version", _text),
        created_at=_field(value, "created_at", _instant),
    )


def _field(value: Mapping[str, Any], name: str, read: Callable[[Any], Value]) -> Value:
    """Return one field, read; raises _FieldError that names it."""
    if name not in value:
        raise _FieldError(f"it has no {name}")
    try:
        return read(value[name])
    except _FieldError:
        raise
    except (ValueError, InvalidOperation) as error:
        raise _FieldError(f"its {name} is not as reslice writes it") from error


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(value)
    return tuple(_text(each) for each in value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(value)
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _instant(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError(value)
    return moment


def _totals(value: Any) -> dict[str, Total]:
    return {name: _total(_mapping(total)) for name, total in _mapping(value).items()}


def _total(value: Mapping[str, Any]) -> Total:
    return Total(_field(value, "before", _number_in), _field(value, "after", _number_in))


def _number_in(value: Any) -> Number | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    number = Decimal(_text(value))
    if number.is_snan():  # no database has it
        raise ValueError(value)
    return number


def _unreadable(path: Path, found: str, cause: Exception | None = None) -> NoReturn:
    failure = Failure(
        "plan_unreadable",
        "a file that `reslice plan --out FILE` wrote",
        (f"{path}: {found}",),
        "reslice plan --help",
    )
    raise Misused(f"plan file {path}", [failure], unchanged="nothing was read from or written to a table") from cause


def _cannot_write(path: Path, found: str, cause: Exception | None = None) -> NoReturn:
    failure = Failure("usage", "a plan file that can be written", (f"{path}: {found}",), "reslice plan --help")
    raise Misused(f"plan file {path}", [failure], unchanged="the file is as it was; no table was written") from cause
