"""Which runs keep rows that a slice once held: a run keeps what it replaced, until that is pruned."""

from __future__ import annotations

from collections.abc import Sequence

from reslice.engines.session import Session
from reslice.ledger.restores import OF_TABLE, table_values
from reslice.ledger.texts import dump
from reslice.recorded import LedgerRun, SliceRows
from reslice.tables import Target

# Of several runs that keep the same rows, the first from `number` on is named: few runs are then named in all.
_KEEPERS = """
SELECT slice, fingerprint, id FROM (
    SELECT
        wanted.slice, wanted.fingerprint, r.id,
        row_number() OVER (
            PARTITION BY wanted.slice, wanted.fingerprint ORDER BY r.number < $number, r.number
        ) AS place
    FROM (
        SELECT
            unnest(CAST($slices AS VARCHAR[])) AS slice,
            unnest(CAST($fingerprints AS VARCHAR[])) AS fingerprint
    ) AS wanted
    JOIN {where}.run_slices AS s ON s.slice = wanted.slice AND s.fingerprint_base = wanted.fingerprint
    JOIN {where}.runs AS r ON r.id = s.run_id
    WHERE {of_table} AND s.state = 'published' AND r.pruned_at IS NULL
        AND r.unit = $unit AND r.fingerprint_columns = $columns
) AS kept WHERE place = 1
"""


def keepers(
    session: Session, where: str, target: Target, run: LedgerRun, wanted: Sequence[SliceRows]
) -> dict[str, list[SliceRows]]:
    """Return the runs that replaced rows which are wanted, from `run` on and then before it, each with those rows.

    Rows are known by their fingerprint, so that only runs are told whose fingerprints cover the columns of `run`.
    """
    if not wanted:
        return {}
    values = {
        "slices": [each.slice for each in wanted],
        "fingerprints": [each.fingerprint for each in wanted],
        "number": run.number,
        "unit": run.unit,
        "columns": dump(list(run.columns)),
    }
    rows = session.execute(_KEEPERS.format(where=where, of_table=OF_TABLE), values | table_values(target))
    found: dict[str, list[SliceRows]] = {}
    for slice_text, fingerprint, run_id in rows:
        found.setdefault(run_id, []).append(SliceRows(slice_text, fingerprint))
    return found
