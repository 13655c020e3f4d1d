"""What rows of slices add up to, wherever these rows are: in the table, or kept by a run that replaced them.

Rows are known by their fingerprint: a sum is told of the rows that the ledger means, and of no others.
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice import ledger
from reslice.contract import Contract
from reslice.engines import sql
from reslice.engines.replaced import replaced_rows
from reslice.engines.session import SqlSession, exact_number, label_of
from reslice.engines.sql import quote
from reslice.errors import Refused
from reslice.ranges import Scope
from reslice.recorded import LedgerRun, SliceRows
from reslice.tables import Target
from reslice.values import Fingerprint, Number

KEEPERS_READ_MAX = 100
"""Runs of which kept rows are read for one series, those first that keep most of what is asked for."""


def sums(
    session: SqlSession, contract: Contract, target: Target, run: LedgerRun, scope: Scope, measure: str
) -> dict[SliceRows, Number | None]:
    """Return what the measure adds up to in the rows that `run` found, and in those that it left, slice by slice.

    Rows that are not found, in the table or kept by these runs, are left out. NULL is told as None, as SQL has it.
    """
    wanted = _sides(run)
    live = dict(_summed(session, contract, target, sql.relation(target), scope, measure))
    found = {rows: total for rows, total in live.items() if rows in wanted}
    where = ledger.place(target.catalog, contract.ledger.schema)
    missing = sorted(wanted - found.keys(), key=lambda rows: (rows.slice, rows.fingerprint))
    keepers = ledger.keepers(session, where, target, run, missing)
    most = sorted(keepers, key=lambda run_id: len(keepers[run_id]), reverse=True)[:KEEPERS_READ_MAX]
    for run_id in most:
        kept = _kept(session, contract, target, where, run_id, scope, measure)
        found |= {rows: kept[rows] for rows in keepers[run_id] if rows in kept}
    return found


def _sides(run: LedgerRun) -> set[SliceRows]:
    """Return the rows of each slice before and after the run, those that are none left out."""
    none = str(Fingerprint())
    sides = {
        SliceRows(each.slice, fingerprint)
        for each in run.slice_rows
        for fingerprint in (each.fingerprint_base, each.fingerprint_staged)
    }
    return {each for each in sides if each.fingerprint != none}


def _kept(
    session: SqlSession, contract: Contract, target: Target, where: str, run_id: str, scope: Scope, measure: str
) -> dict[SliceRows, Number | None]:
    """Return what the rows add up to that one run replaced; nothing where they cannot be read as rows of the table."""
    (keeper,) = ledger.find(session, where, run_id)
    try:
        rows = replaced_rows(session, contract, target, keeper)
    except Refused:  # the table has other columns by now, or its rows are of another method
        return {}
    return dict(_summed(session, contract, target, f"({rows}) AS kept_rows", scope, measure))


def _summed(
    session: SqlSession, contract: Contract, target: Target, rows: str, scope: Scope, measure: str
) -> Iterator[tuple[SliceRows, Number | None]]:
    """Yield every slice that has rows, with what they add up to, added up by the database."""
    dialect = session.dialect
    column, summed = sql.slice_column(contract, target), target.column(measure)
    shown = dialect.shown(quote(measure), summed, sql.scales(contract)[measure])
    sums_of_slices = (
        f"SELECT {sql.SLICE} AS slice, count(*) AS row_count, sum({sql.HASH}) AS total, sum({shown}) AS amount\n"
        f"FROM ({sql.rows_select(dialect, contract, target, rows, scope)}) AS scoped_rows GROUP BY 1"
    )
    text = dialect.slice_text("slice", column)
    for value, count, total, amount in session.execute(
        f"SELECT {text}, row_count, total, amount FROM ({sums_of_slices}) AS slices"
    ):
        try:
            label = label_of(scope, column, value)
        except ValueError:  # a value that is no slice, which no run has put there
            continue
        fingerprint = Fingerprint(int(count), int(total))
        yield SliceRows(label, str(fingerprint)), exact_number(amount, summed.family)
