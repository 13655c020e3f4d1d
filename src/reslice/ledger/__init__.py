"""The ledger: tables in the target's own database that say what every run was asked, found and did.

A row that says *published* is written in the commit that replaces the data, so one is never there without the other.
`tables` says what there is, `writing` puts it there, `reading` takes it out.
"""

from reslice.ledger.reading import (
    Covering,
    coverage,
    find,
    last_covering,
    later_run,
    left_affected,
    runs,
    state_of,
    whole,
)
from reslice.ledger.tables import (
    KEPT_RUN,
    TABLES,
    LedgerColumn,
    LedgerTable,
    create_kept,
    create_statements,
    foreign_tables,
    kept_columns,
    kept_table,
    place,
)
from reslice.ledger.texts import span
from reslice.ledger.writing import (
    abandon,
    close,
    count_published,
    insert_groups,
    insert_rest,
    insert_slices,
    open_request,
)

__all__ = [
    "KEPT_RUN",
    "TABLES",
    "Covering",
    "LedgerColumn",
    "LedgerTable",
    "abandon",
    "close",
    "count_published",
    "coverage",
    "create_kept",
    "create_statements",
    "find",
    "foreign_tables",
    "insert_groups",
    "insert_rest",
    "insert_slices",
    "kept_columns",
    "kept_table",
    "last_covering",
    "later_run",
    "left_affected",
    "open_request",
    "place",
    "runs",
    "span",
    "state_of",
    "whole",
]
