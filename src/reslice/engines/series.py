"""What rows of slices add up to, wherever these rows are: in the table, or kept by a run that replaced them.

Rows are known by their fingerprint: a sum is told of the rows that the ledger means, and of no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
    adding = _Adding(session, contract, target, scope, measure)
    wanted = _sides(run)
    live = dict(adding.up(sql.relation(target)))
    found = {rows: total for rows, total in live.items() if rows in wanted}
    where = ledger.place(target.catalog, contract.ledger.schema)
    missing = sorted(wanted - found.keys(), key=lambda rows: (rows.slice, rows.fingerprint))
    keepers = ledger.keepers(session, where, target, run, missing)
    most = sorted(keepers, key=lambda run_id: len(keepers[run_id]), reverse=True)[:KEEPERS_READ_MAX]
    for run_id in most:
        kept = adding.up_kept(where, run_id)
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


@dataclass(frozen=True, slots=True)
class _Adding:
    """A measure that is added up, slice by slice, in rows of a target's shape."""

    session: SqlSession
    contract: Contract
    target: Target
    scope: Scope
    measure: str

    def up_kept(self, where: str, run_id: str) -> dict[SliceRows, Number | None]:
        """Return the sums of the rows that one run replaced; none where these cannot be read as rows of the table."""
        (keeper,) = ledger.find(self.session, where, run_id)
        try:
            rows = replaced_rows(self.session, self.contract, self.target, keeper)
        except Refused:  # the table has other columns by now, or its rows are of another method
            return {}
        return dict(self.up(f"({rows}) AS kept_rows"))

    def up(self, rows: str) -> Iterator[tuple[SliceRows, Number | None]]:
        """Yield every slice that has rows, with their sum, added up by the database."""
        dialect, contract, target = self.session.dialect, self.contract, self.target
        column, summed = sql.slice_column(contract, target), target.column(self.measure)
        shown = dialect.shown(quote(self.measure), summed, sql.scales(contract)[self.measure])
        of_slices = (
            f"SELECT {sql.SLICE} AS slice, count(*) AS row_count, sum({sql.HASH}) AS total, sum({shown}) AS amount\n"
            f"FROM ({sql.rows_select(dialect, contract, target, rows, self.scope)}) AS scoped_rows GROUP BY 1"
        )
        text = dialect.slice_text("slice", column)
        statement = f"SELECT {text}, row_count, total, amount FROM ({of_slices}) AS slices"
        for value, count, total, amount in self.session.execute(statement):
            try:
                label = label_of(self.scope, column, value)
            except ValueError:  # a value that is no slice, which no run has put there
                continue
            fingerprint = Fingerprint(int(count), int(total))
            yield SliceRows(label, str(fingerprint)), exact_number(amount, summed.family)
