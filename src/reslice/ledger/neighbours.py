"""Which runs stand around one in the ledger: before and after it, over the same slices later, and because of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from reslice.engines.session import Session
from reslice.ledger.reading import select_runs
from reslice.recorded import LedgerRun

NAMED_MAX = 10
"""Later runs over the same slices, and runs that name one, of which so many are told."""

_UNREAD = frozenset({"sql", "checks", "controls", "consents", "warnings", "totals", "fingerprint_columns"})
"""Columns of runs that tell what a run found, and not which it is."""

_OVER = (
    "table_name = $table_name AND number > $number"
    " AND range_first <= (SELECT range_last FROM {where}.runs WHERE id = $id)"
    " AND range_last >= (SELECT range_first FROM {where}.runs WHERE id = $id)"
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The runs around one of the ledger.

    `before` and `after` are those of its target. `over` are the first that came later over some of its range, and
    `over_count` is how many there are; `naming` are those that approve or restore it.
    """

    before: LedgerRun | None = None
    after: LedgerRun | None = None
    over: tuple[LedgerRun, ...] = ()
    over_count: int = 0
    naming: tuple[LedgerRun, ...] = ()


def neighbours(session: Session, where: str, absent: Collection[str], run: LedgerRun) -> Neighbours | None:
    """Return the runs around `run`; None where this ledger does not hold it."""
    about = {"id": run.id, "number": run.number, "target": run.target, "table_name": run.table}

    def some(condition: str, order: str, limit: int, *names: str) -> tuple[LedgerRun, ...]:
        rest = f"WHERE {condition} ORDER BY number {order} LIMIT {limit:d}"
        parameters: dict[str, Any] = {name: about[name] for name in names}
        return tuple(select_runs(session, where, rest, parameters, unread={*absent, *_UNREAD}))

    if not some("id = $id AND target = $target", "DESC", 1, "id", "target"):
        return None
    before = some("target = $target AND number < $number", "DESC", 1, "target", "number")
    after = some("target = $target AND number > $number", "ASC", 1, "target", "number")
    over = _OVER.format(where=where)
    listed = some(over, "ASC", NAMED_MAX, "table_name", "number", "id")
    count = len(listed)
    if count == NAMED_MAX:
        parameters = {name: about[name] for name in ("table_name", "number", "id")}
        count = session.execute(f"SELECT count(*) FROM {where}.runs WHERE {over}", parameters)[0][0]
    restores = "" if "restores" in absent else " OR restores = $id"
    naming = some(f"number > $number AND (approves = $id{restores})", "ASC", NAMED_MAX, "number", "id")
    return Neighbours(next(iter(before), None), next(iter(after), None), listed, count, naming)
