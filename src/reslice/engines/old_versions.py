"""append_version: which versions a table holds, and letting go of those that are not current."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from reslice import ledger
from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.session import Session
from reslice.errors import SAME_AGAIN, Failure, Retryable
from reslice.moments import label, moment_from_column
from reslice.ranges import Scope
from reslice.recorded import Version
from reslice.tables import Target


def listed(session: Session, contract: Contract, target: Target, scope: Scope | None) -> tuple[Version, ...]:
    """Return the versions in the table, by slice and then by number; those of no run come first."""
    where = ledger.place(target.catalog, contract.ledger.schema)
    select = versions.listed_select(session.dialect, contract, target, where, scope)
    rows = session.execute(
        "SELECT slice, version, row_count, is_current, CAST(timezone('UTC', replaced_at) AS VARCHAR)"
        f" FROM ({select}) AS listed LEFT JOIN {where}.runs AS r ON r.id = listed.version"
        " ORDER BY slice, coalesce(r.number, 0)"
    )
    family, cut = sql.slice_column(contract, target).family.value, contract.slice
    found = []
    for text, run, count, is_current, replaced in rows:
        moment = moment_from_column(text, family, cut.unit, cut.timezone)
        if scope is not None and not scope.contains(moment):  # a current version without rows lies in no range of rows
            continue
        replaced_at = None if replaced is None else datetime.fromisoformat(replaced).replace(tzinfo=UTC)
        found.append(Version(label(moment, cut.unit, cut.timezone), run, int(count), bool(is_current), replaced_at))
    return tuple(found)


def deleted_words(old: Sequence[Version], rows: int) -> tuple[str, ...]:
    """Say what was deleted, as the ledger keeps it of a run that has no diff; nothing when nothing was."""
    if not old:
        return ()
    told = "1 version" if len(old) == 1 else f"{len(old)} versions"
    many = "1 row" if rows == 1 else f"{rows} rows"
    were = "was" if len(old) == 1 else "were"
    return (f"{told} with {many} {were} deleted, from {old[0].slice} to {old[-1].slice}",)


def take_turn(session: Session, contract: Contract, target: Target, scope: Scope) -> int:
    """Take the turn of the table, so that no publish is under way meanwhile; the caller's transaction holds it."""
    where = ledger.place(target.catalog, contract.ledger.schema)
    generations = session.execute(ledger.fence_statement(where), {"table_name": target.resolved})
    if len(generations) != 1:
        raise not_pruned(contract, scope, "the fence of the table is gone from the ledger: somebody has deleted it")
    return int(generations[0][0])


def not_pruned(contract: Contract, scope: Scope, found: str) -> Retryable:
    """Return the error of a pruning that was rolled back, and may go through when it is run again."""
    failure = Failure("conflict", "old versions deleted in one commit", (found,), SAME_AGAIN)
    unchanged = f"{contract.table} is as it was; everything was rolled back"
    return Retryable(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)


def prune(session: Session, contract: Contract, target: Target, scope: Scope, before: datetime) -> int:
    """Delete old versions, in the caller's transaction; return how many rows they had."""
    where = ledger.place(target.catalog, contract.ledger.schema)
    statement = versions.prune_statement(session.dialect, contract, target, where, scope)
    return int(session.execute(statement, {"before": before.isoformat()})[0][0])
