"""RS304: Rows are matched by a column that can be NULL.

NULL equals nothing, not even NULL. A row whose key is NULL never meets the one that the run before wrote: it is added
once more by each run, while all others are replaced as they should be.

Bad (snowflake):

    merge into order_lines as target
    using (
      select o.order_id, p.product_id, o.amount_cents
      from orders as o left join products as p on p.code = o.product_code
    ) as source
    on target.order_id = source.order_id and target.product_id = source.product_id
    when matched then update set amount_cents = source.amount_cents
    when not matched then insert (order_id, product_id, amount_cents)
      values (source.order_id, source.product_id, source.amount_cents)

Good (snowflake):

    merge into order_lines as target
    using (
      select o.order_id, p.product_id, o.amount_cents
      from orders as o left join products as p on p.code = o.product_code
    ) as source
    on target.order_id = source.order_id and target.product_id is not distinct from source.product_id
    when matched then update set amount_cents = source.amount_cents
    when not matched then insert (order_id, product_id, amount_cents)
      values (source.order_id, source.product_id, source.amount_cents)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from reslice.audit.matching import Match
from reslice.audit.naming import table_columns
from reslice.audit.nulls import Nulls, nulls_made, nulls_of
from reslice.audit.rule import Found
from reslice.audit.write import Way, Write

HELP = "compare the column so that NULL equals NULL (IS NOT DISTINCT FROM), or give it a value in place of NULL"

_COLUMNS_MAX = 40
"""How many columns of a key are looked at."""


def write(write: Write) -> Iterator[Found]:
    """Yield the first column of a key that can be NULL by what the text says."""
    if write.way not in (Way.UPSERT, Way.FILL, Way.KEYED):
        return
    names = {table: name for name, table in table_columns(write).items()}
    for match in write.matches[:_COLUMNS_MAX]:
        why = _why(write, match, names)
        if why:
            place = write.spot(match.other) if isinstance(write.node, exp.Merge) else write.span
            detail = f"{match.column} can be NULL ({why}), and NULL equals nothing: each run adds such rows again"
            yield Found(place, detail)
            return


def _why(write: Write, match: Match, names: Mapping[str, str]) -> str:
    """Return what says that a column of the key can be NULL; empty where nothing does, or where it does no harm."""
    declared = write.declared
    is_equal = any(match.column in key for key in declared.equal_nulls)
    if match.is_null_safe or is_equal or match.column in declared.not_null:
        return ""
    source = _source(write, match, names)
    if source.is_never:
        return ""
    if source.why:
        return source.why
    return f"{write.called} is declared to take it" if declared.takes_null(match.column) else ""


def _source(write: Write, match: Match, names: Mapping[str, str]) -> Nulls:
    """Return whether the column that a key is compared with can be NULL."""
    query = write.query
    if query is None:
        return Nulls()
    if isinstance(match.other, exp.Coalesce):
        return Nulls(is_never=True)
    name = names.get(match.column, match.column)
    if isinstance(match.other, exp.Column) and isinstance(write.node, exp.Merge):
        name = match.other.name.lower()
    found = nulls_of(query, name, write.script.known)
    if found.why or found.is_never or match.other is None:
        return found
    return nulls_made(match.other)
