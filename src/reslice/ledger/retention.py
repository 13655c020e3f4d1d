"""What the ledger lets go of: kept rows and groups of runs that are older than `ledger.keep_days`.

The last published run of a slice keeps all it has, however old it is, so that there is a way back to what was before
it, and so does the run that it restored. `runs`, `run_slices` and `fences` keep every row. All of one pruning is in one
transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reslice.engines.session import Session
from reslice.engines.sql import quote
from reslice.ledger.tables import KEPT_RUN

RUNS_MAX = 10_000
"""How many runs one look lets go of, the oldest first, so that the first one of a large ledger holds nothing up."""

# One look in 24 hours is enough. A look in the future was taken before the clock was set back, and says nothing.
_IS_DUE = """
SELECT 1
WHERE EXISTS (SELECT 1 FROM {where}.runs WHERE table_name = $table_name AND finished_at < {limit})
    AND NOT EXISTS (
        SELECT 1 FROM {where}.prunings
        WHERE table_name = $table_name AND looked_at > now() - INTERVAL '1 day' AND looked_at <= now()
    )
"""

# Old is a run whose own end is before the limit, and that of every run before it: a run that ended while the clock was
# behind is as young as the one before it. Ends that lie in the future make nothing young.
#
# Which run published a slice last is asked of three things that count up, and the answer to each is spared: per-slice
# runs can overlap, and a clock can be set back. Slices are the same when their label, unit and target are, so that a
# contract that changes any of them lets go of less. A run that is spared for one slice is spared whole, and with a
# restore the run whose rows it put back, so that to restore it again is to find nothing to do.
_OLD_RUNS = """
WITH ours AS (
    SELECT
        id, number, target, unit, publish_order, finished_at, pruned_at, restores,
        groups_added + groups_changed + groups_removed AS groups_moved,
        max(finished_at) FILTER (WHERE finished_at <= now()) OVER (ORDER BY number) AS finished_before
    FROM {where}.runs
    WHERE table_name = $table_name
),
published AS (
    SELECT
        ours.id, ours.number, ours.publish_order, slices.published_at,
        coalesce(ours.target, '') AS target, coalesce(ours.unit, '') AS unit, slices.slice
    FROM ours JOIN {where}.run_slices AS slices ON slices.run_id = ours.id
    WHERE slices.state = 'published'
),
newest AS (
    SELECT
        target, unit, slice,
        max(number) AS number, max(publish_order) AS publish_order, max(published_at) AS published_at
    FROM published
    GROUP BY target, unit, slice
),
last AS (
    SELECT published.id
    FROM published JOIN newest USING (target, unit, slice)
    WHERE published.number = newest.number
        OR published.publish_order = newest.publish_order
        OR published.published_at = newest.published_at
),
spared AS (
    SELECT id FROM last
    UNION ALL
    SELECT restores FROM ours WHERE id IN (SELECT id FROM last) AND restores IS NOT NULL
)
SELECT id
FROM ours
WHERE finished_at < {limit}
    AND (finished_before IS NULL OR finished_before < {limit})
    AND pruned_at IS NULL
    AND (groups_moved > 0 OR id IN (SELECT id FROM published))
    AND id NOT IN (SELECT id FROM spared)
ORDER BY number
LIMIT $runs_max
"""


def is_due(session: Session, where: str, table: str, days: int) -> bool:
    """Return whether runs of `table` may be too old, and none was looked for within a day. Nothing is written."""
    statement = _IS_DUE.format(where=where, limit=_limit(days))
    return bool(session.execute(statement, {"table_name": table}))


def old_runs(session: Session, where: str, table: str, days: int) -> list[str]:
    """Return the oldest runs of `table` that have something to let go of, at most `RUNS_MAX`."""
    statement = _OLD_RUNS.format(where=where, limit=_limit(days))
    rows = session.execute(statement, {"table_name": table, "runs_max": RUNS_MAX})
    return [row[0] for row in rows]


def prune(session: Session, where: str, kept_tables: Sequence[str], table: str, days: int) -> tuple[str, ...]:
    """Delete what runs of `table` hold that is too old, mark these runs, and say how many; the caller commits.

    `kept_tables` are those of the ledger, of every set of columns there was: rows go by the run that replaced them. An
    empty one stays, as do runs beyond `RUNS_MAX` until the next look.
    """
    runs = old_runs(session, where, table, days)
    if runs:
        ids = {"ids": runs}
        for name in kept_tables:
            session.execute(f"DELETE FROM {name} WHERE {quote(KEPT_RUN)} IN ({_IDS})", ids)
        session.execute(f"DELETE FROM {where}.run_groups WHERE run_id IN ({_IDS})", ids)
        session.execute(f"UPDATE {where}.runs SET pruned_at = now() WHERE id IN ({_IDS})", ids)
    _remember_the_look(session, where, {"table_name": table})
    return _words(len(runs), days)


_IDS = "SELECT unnest(CAST($ids AS VARCHAR[]))"


def _limit(days: int) -> str:
    """Return the SQL of the instant before which a run is too old."""
    return f"now() - INTERVAL '{days:d} days'"


def _remember_the_look(session: Session, where: str, table: dict[str, Any]) -> None:
    """Note that the table's runs were looked through now. Its fence is not touched: a publish waits for nothing."""
    noted = session.execute(f"UPDATE {where}.prunings SET looked_at = now() WHERE table_name = $table_name", table)
    if not noted[0][0]:
        session.execute(f"INSERT INTO {where}.prunings (table_name, looked_at) VALUES ($table_name, now())", table)


def _words(runs: int, days: int) -> tuple[str, ...]:
    if not runs:
        return ()
    counted = "1 run" if runs == 1 else f"{runs} runs"
    old = "1 day" if days == 1 else f"{days} days"
    rest = "; others a day later" if runs == RUNS_MAX else ""
    return (f"pruned: kept rows and groups of {counted} older than {old} (ledger: keep_days){rest}",)
