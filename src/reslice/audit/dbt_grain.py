"""What a model's query has one row of, in the columns of its unique key as far as these tell the others.

A model says its key itself, often as a hash of the columns that it groups by, or as an id that it groups by with all
that belongs to it. Columns that such a key tells are no finer rows; beside an id only a period that it lacks is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from reslice.reading.marks import MARK
from reslice.reading.outputs import JobQuery, Output, grain, is_day, unit_of

_ID = re.compile(r"(?:^|_)(?:id|ids|key|keys|uuid|guid|hash|sk|pk|skey|hashkey|address|account)$|_id_")
_CAREFUL = 2
"""A key of more columns than these was listed with care: what else is grouped by belongs to them."""
_PERIOD = re.compile(r"^(?:date|day|ds|dt|dy)$|(?:^|_)(?:day|week|month|quarter|year|hour|minute)$")


def grain_by(query: JobQuery, keys: Collection[str]) -> tuple[str, ...] | None:
    """Return the columns, in small letters, that a query has one row for each combination of; None: it does not say."""
    outputs = query.outputs()
    found = grain(query, outputs)
    if found.names is None:
        return None
    names = [each.lower() for each in found.names]
    if not keys:
        return tuple(names)
    if found.why == "SELECT DISTINCT":
        return None
    by_name = {each.name.lower(): each for each in outputs}
    told = set(keys).union(*(_told_by(by_name[key], query) for key in keys if key in by_name))
    finer = [each for each in names if each not in keys and not _is_told(each, by_name.get(each), told)]
    is_own = len(finer) < len(names)
    if found.why != "GROUP BY" and found.why != "GROUP BY ALL" and not is_own:
        return None
    if (any(_ID.search(key) for key in keys) or len(keys) > _CAREFUL) and is_own:
        if any(_is_period(each, by_name.get(each)) for each in told):
            return tuple(each for each in keys if each in names or is_own)
        finer = [each for each in finer if _is_period(each, by_name.get(each))]
    return (*(each for each in keys if each in names or is_own), *finer)


def _told_by(key: Output, query: JobQuery) -> set[str]:
    """Return the columns whose values a key tells: all that it is made of, unless it is a part of a time."""
    if key.origin is None or key.select is None:
        return set()
    is_cut = not isinstance(key.origin, exp.Column) and (unit_of(key.origin) is not None or is_day(key.origin))
    columns = {each.name.lower() for each in key.origin.find_all(exp.Column)}
    if is_cut and len(columns) == 1:
        return set()
    return set(query.names_behind(key.origin, key.select))


def _is_told(name: str, output: Output | None, told: Collection[str]) -> bool:
    """Whether a column is, or is made of, columns that the key tells."""
    if name in told:
        return True
    if output is None:
        return False
    for value in (output.node.unalias() if output.node is not None else None, output.origin):
        made_of = _columns(value)
        if made_of and made_of <= set(told):
            return True
    return False


def _columns(value: exp.Expr | None) -> set[str]:
    if value is None:
        return set()
    return {each.name.lower() for each in value.find_all(exp.Column) if not MARK.fullmatch(each.name)}


def _is_period(name: str, output: Output | None) -> bool:
    """Whether a column is the period of an aggregate: a day, a month."""
    origin = output.origin if output is not None else None
    if origin is not None and not isinstance(origin, exp.Column) and (unit_of(origin) is not None or is_day(origin)):
        return True
    return _PERIOD.search(name) is not None
