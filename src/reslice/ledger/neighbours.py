"""Which runs stand around one in the ledger: before and after it, over the same slices later, and because of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reslice.engines.session import Session
from reslice.ledger.reading import select_runs
from reslice.ledger.texts import id_of
from reslice.recorded import LedgerRun

NAMED_MAX = 10
"""Later runs over the same slices, and runs that name one, of which so many are told."""

_UNREAD = frozenset({"sql", "checks", "controls", "consents", "warnings", "totals", "fingerprint_columns"})
"""Columns of runs that tell what a run found, and not which it is."""

# One look at every run: their rows are wide, and there are many.
_AROUND = """
SELECT
    max(number) FILTER (WHERE target = $target AND number < $number),
    min(number) FILTER (WHERE target = $target AND number > $number),
    (array_agg(number ORDER BY number) FILTER (WHERE {over}))[1:{most}],
    count(*) FILTER (WHERE {over}),
    (array_agg(number ORDER BY number) FILTER (WHERE number > $number AND (approves = $id OR {restores})))[1:{most}]
FROM {where}.runs
"""
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
    here = f"SELECT 1 FROM {where}.runs WHERE id = $id AND target = $target"
    if not session.execute(here, {"id": run.id, "target": run.target}):
        return None
    question = _AROUND.format(
        where=where,
        over=_OVER.format(where=where),
        restores="false" if "restores" in absent else "restores = $id",
        most=NAMED_MAX,
    )
    about = {"id": run.id, "number": run.number, "target": run.target, "table_name": run.table}
    before, after, over, count, naming = session.execute(question, about)[0]
    numbers = {each for each in (before, after, *(over or ()), *(naming or ())) if each is not None}
    runs = {each.number: each for each in _runs(session, where, absent, numbers)}
    return Neighbours(
        runs.get(before),
        runs.get(after),
        tuple(runs[number] for number in over or ()),
        count,
        tuple(runs[number] for number in naming or ()),
    )


def _runs(session: Session, where: str, absent: Collection[str], numbers: Collection[int]) -> list[LedgerRun]:
    """Return runs by their numbers; by their ids, which the database finds at once."""
    rest = "WHERE id = ANY(CAST($ids AS VARCHAR[]))"
    return select_runs(session, where, rest, {"ids": [id_of(each) for each in numbers]}, unread={*absent, *_UNREAD})
