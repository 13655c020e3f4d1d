"""The ledger: tables in the target's own database that say what every run was asked, found and did.

A row that says *published* is written in the commit that replaces the data, so one is never there without the other.
`tables` says what there is, `writing` puts it there, `reading` takes it out, `retention` lets go of what is too old.
"""

from reslice.ledger.keepers import keepers
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
from reslice.ledger.restores import restored, writes_since
from reslice.ledger.retention import is_due, prune
from reslice.ledger.tables import (
    KEPT_RUN,
    TABLES,
    LedgerColumn,
    LedgerTable,
    create_kept,
    create_kept_of_types,
    create_statements,
    fence_statement,
    foreign_tables,
    kept_table,
    place,
)
from reslice.ledger.texts import span
from reslice.ledger.writing import (
    abandon,
    add_fence,
    close,
    count_published,
    insert_groups,
    insert_rest,
    insert_slices,
    open_processes,
    open_request,
)

__all__ = [
    "KEPT_RUN",
    "TABLES",
    "Covering",
    "LedgerColumn",
    "LedgerTable",
    "abandon",
    "add_fence",
    "close",
    "count_published",
    "coverage",
    "create_kept",
    "create_kept_of_types",
    "create_statements",
    "fence_statement",
    "find",
    "foreign_tables",
    "insert_groups",
    "insert_rest",
    "insert_slices",
    "is_due",
    "keepers",
    "kept_table",
    "last_covering",
    "later_run",
    "left_affected",
    "open_processes",
    "open_request",
    "place",
    "prune",
    "restored",
    "runs",
    "span",
    "state_of",
    "whole",
    "writes_since",
]
