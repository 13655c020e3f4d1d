"""Which SELECTs the rows of a query come from, at any depth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from sqlglot import exp

from reslice.reading.outputs import JobQuery

_REACHED: WeakKeyDictionary[JobQuery, tuple[int, list[exp.Select]]] = WeakKeyDictionary()
"""What was found for queries that are judged now: every rule asks for it."""


def reached(query: JobQuery, start: exp.Expr | None = None) -> list[exp.Select]:
    """Return every SELECT that the rows of a query come from, those of WITH and of stages too."""
    if start is not None:
        return _reached(query, start)
    known = _REACHED.get(query)
    if known is None or known[0] != len(query.named):  # a query gets to know its stages after it is read
        known = _REACHED[query] = (len(query.named), _reached(query, query.tree))
    return known[1]


def _reached(query: JobQuery, start: exp.Expr) -> list[exp.Select]:
    found: list[exp.Select] = []
    pending, seen = [start], set()
    while pending:
        tree = pending.pop(0)
        if id(tree) in seen:
            continue
        seen.add(id(tree))
        for select in query.parts(tree, exp.Select):
            if id(select) not in seen or select is tree:
                seen.add(id(select))
                found.append(select)
                pending += [inner for inner in query.relations(select).values() if inner is not None]
    return list(_unlike(found))


def _unlike(selects: Iterable[exp.Select]) -> Iterator[exp.Select]:
    """Yield each SELECT that is not word for word one before it."""
    before: defaultdict[tuple[str, ...], list[exp.Select]] = defaultdict(list)
    for select in selects:
        alike = before[tuple(each.alias_or_name for each in select.expressions)]
        if select not in alike:
            alike.append(select)
            yield select
