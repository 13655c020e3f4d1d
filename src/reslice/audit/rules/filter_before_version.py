"""RS405: Versions are left out before the newest one is chosen.

A table of versions holds several rows for one order; the newest counts. A WHERE beside the row_number() that chooses it
is applied first: when the newest version does not pass, because the order was cancelled or moved to another day, an
older version that does pass is chosen in its place. The cancelled order is counted, and the moved one on both days.
Choose the newest version of all first, then filter. A condition on the key itself does no harm.

Bad (snowflake):

    insert overwrite into latest_orders
    select order_id, order_date, amount_cents from order_versions
    where status = 'paid'
    qualify row_number() over (partition by order_id order by version_number desc) = 1

Good (snowflake):

    insert overwrite into latest_orders
    select order_id, order_date, amount_cents from (
      select * from order_versions
      qualify row_number() over (partition by order_id order by version_number desc) = 1
    ) as newest
    where status = 'paid'
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.predicates import conditions, is_dated, leaf_of, subject_of
from reslice.audit.rule import Found
from reslice.audit.scope import place_of
from reslice.audit.versions import Choice, before, choices
from reslice.audit.write import Way, Write
from reslice.reading.marks import MARK

HELP = "choose the newest version of each key first, in a subquery, and filter its rows"
_CHANGES = re.compile(
    r"(?:^|_)(?:status|state|stage|phase|deleted|delete|active|cancelled|canceled|cancel|void|voided|refunded|op|operation"
    r"|action|removed|archived|closed|open|enabled|disabled|paid|shipped)(?:_|$)"
)
_NEVER_CHANGES = re.compile(
    r"(?:^|_)(?:created|creation|inserted|ingested|ingestion|loaded|load|received|registered|signup|partition\w*|event)(?:_|$)"
)
_VERSION = re.compile(
    r"(?:^|_)(?:update\w*|modif\w*|version\w*|ver|revision|rev|valid|effective|change\w*|changed|lsn|scn|seq|sequence"
    r"|corrected|amended)(?:_|$)"
)
_DELIVERY = re.compile(r"(?:^|_)(?:event|message|msg|delivery|record|row|hash|uuid|request)(?:_|$)|hash$")


def write(write: Write) -> Iterator[Found]:
    """Yield a condition by what versions change, on the rows from which the newest version is chosen."""
    if write.query is None or write.way is Way.UPDATE:
        return
    spans: set[tuple[int, int]] = set()
    for choice in choices(write.query):
        columns: set[tuple[str, ...]] = set()
        for condition, select in before(write.query, choice):
            sort = _sort(write, choice, condition, select)
            if sort is None:
                continue
            span = place_of(write, condition)
            own = _columns(condition)
            if span not in spans and own not in columns:
                spans.add(span)
                columns.add(own)
                yield Found(span, _why(write, choice, condition), sort)


def _columns(condition: exp.Expr) -> tuple[str, ...]:
    names = {each.name.lower() for each in condition.find_all(exp.Column)}
    return tuple(sorted(name for name in names if not MARK.fullmatch(name)))


def _sort(write: Write, choice: Choice, condition: exp.Expr, select: exp.Select) -> Sort | None:
    """Return how sure it is that versions of one key differ in what a condition is about; None: they do not."""
    assert write.query is not None, "only writes with a query are judged"
    names = set()
    for column in condition.find_all(exp.Column):
        subject = subject_of(column)
        if subject is None:
            continue
        leaf = leaf_of(write.query, subject, select)
        if leaf.table and choice.table and leaf.table != choice.table:
            return None
        names.add(leaf.name)
    if not names or names <= choice.keys or names <= choice.order or condition.find(exp.Query) is not None:
        return None
    if any(_CHANGES.search(name) for name in names):
        return Sort.FINDING
    own = [each for each in conditions(condition, write.script.outside) if is_dated(each, write.script.known)]
    if not own or any(_NEVER_CHANGES.search(name) for name in names):
        return None
    if any(_VERSION.search(name) for name in choice.order):
        return Sort.FINDING
    return None if any(_DELIVERY.search(name) for name in choice.keys) else Sort.UNKNOWN


def _why(write: Write, choice: Choice, condition: exp.Expr) -> str:
    key = ", ".join(sorted(choice.keys))
    shown = write.shown(condition)
    return f"{shown} is applied before the newest version of each {key} is chosen: an older one that passes comes back"
