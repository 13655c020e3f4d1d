"""The evidence: copies of the table at its grain, made, compared and counted by the database itself.

Nothing but counts, sums and the first few groups ever leaves it. Keys are compared so that NULL equals NULL, and two
rows are the same when every compared column has the same exact text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reslice.engines import sql
from reslice.engines.session import Session, exact_number
from reslice.engines.sql import HASH, ROWS, TOTAL, quote
from reslice.prove.shape import Shape
from reslice.prove.values import Between, Comparison, Group, Moved, State
from reslice.tables import Column, Family
from reslice.values import Fingerprint, Number

INSIDE = '"reslice:inside"'
KIND = '"reslice:kind"'
GROUPS_MAX = 200
"""Groups of one comparison that are fetched and shown; how many more there are is always said."""


class Evidence:
    """Copies of one table in a place of their own; `place` is that schema, qualified and quoted."""

    def __init__(self, session: Session, place: str, shape: Shape, inside: str) -> None:
        self._session = session
        self._dialect = session.dialect
        self._place = place
        self._shape = shape
        self._inside = inside

    def named(self, name: str) -> str:
        """Return the qualified name of one copy."""
        return f"{self._place}.{quote(name)}"

    def take(self, name: str, relation: str) -> State:
        """Copy the rows of a relation with the table's columns, and return what they add up to."""
        columns = [f"{self._plain(column)} AS {quote(column.name)}" for column in self._shape.columns]
        self._session.execute(
            f"CREATE TABLE {self.named(name)} AS SELECT *, {self._hash()} AS {HASH} FROM"
            f" (SELECT {', '.join(columns)}, coalesce({self._inside}, false) AS {INSIDE} FROM {relation}) AS rows_now"
        )
        return self.state(self.named(name))

    def state(self, relation: str) -> State:
        """Return row count and digest of a copy, and the sums of its rows of the range."""
        numbers = self._shape.numbers
        sums = [f"sum({self._shown(quote(column.name), column)}) FILTER (WHERE {INSIDE})" for column in numbers]
        row = self._session.execute(
            f"SELECT {', '.join(['count(*)', f'count(*) FILTER (WHERE {INSIDE})', f'coalesce(sum({HASH}), 0)', *sums])}"
            f" FROM {relation}"
        )[0]
        totals: Mapping[str, Number | None] = {
            column.name: exact_number(value, column.family) for column, value in zip(numbers, row[3:], strict=True)
        }
        return State(int(row[0]), int(row[1]), Fingerprint(int(row[0]), int(row[2])), totals)

    def live(self, relation: str) -> State:
        """Return row count, sums and digest of a relation with the table's columns; nothing is written."""
        columns = [f"{self._plain(column)} AS {quote(column.name)}" for column in self._shape.columns]
        return self.state(
            f"(SELECT *, {self._hash()} AS {HASH} FROM (SELECT {', '.join(columns)},"
            f" coalesce({self._inside}, false) AS {INSIDE} FROM {relation}) AS rows_now) AS hashed"
        )

    def runs(self, first: str, later: str) -> Comparison:
        """Compare what a later run left with what the first one left."""
        kind = (
            f"CASE WHEN a.{ROWS} IS NULL THEN 'added' WHEN b.{ROWS} IS NULL THEN 'removed'"
            f" WHEN {self._is_doubled(again=True)} THEN 'doubled' ELSE 'changed' END"
        )
        return self._compared(Between.RUNS, first, later, kind)

    def source(self, source: str, after: str, before: str) -> Comparison:
        """Compare the table after the last run with its source, within the range.

        A group that the source gives no longer, or otherwise while the table holds what it held before, is stale.
        """
        unmoved = f"z.{ROWS} = b.{ROWS} AND z.{TOTAL} = b.{TOTAL}"
        kind = (
            f"CASE WHEN b.{ROWS} IS NULL THEN 'missing' WHEN a.{ROWS} IS NULL THEN 'stale'"
            f" WHEN {self._is_doubled()} THEN 'doubled' WHEN {unmoved} THEN 'stale' ELSE 'differs' END"
        )
        where = f"WHERE {INSIDE}"
        earlier = f"LEFT JOIN {self._folded(before, where)} AS z ON {' AND '.join(self._equal('z', 'b'))}"
        return self._compared(Between.SOURCE, source, after, kind, where=where, joined=earlier)

    def outside(self, before: str, after: str) -> Comparison:
        """Compare the rows outside the range with what they were before the first run."""
        return self._compared(Between.OUTSIDE, before, after, "'outside the range'", where=f"WHERE NOT {INSIDE}")

    def keys(self, after: str) -> Comparison:
        """Count the keys that stand in several rows, and those with a NULL where none may be."""
        listed = sql.column_list(column.name for column in self._shape.keys)
        nulls = " OR ".join(f"{quote(name)} IS NULL" for name in self._shape.required) or "false"
        rows = f"(SELECT {listed}, count(*) AS {ROWS} FROM {self.named(after)} WHERE {INSIDE} GROUP BY {listed}) AS k"
        shown = [self._shown(quote(column.name), column) for column in self._shape.keys]
        counts: dict[Group, int] = {}
        groups: list[Moved] = []
        for kind, condition in ((Group.REPEATED_KEY, f"{ROWS} > 1"), (Group.NULL_KEY, nulls)):
            counted = self._session.execute(f"SELECT count(*) FROM {rows} WHERE {condition}")[0][0]
            if not counted:
                continue
            counts[kind] = int(counted)
            found = self._session.execute(
                f"SELECT {', '.join(shown)}, {ROWS} FROM {rows} WHERE {condition}"
                f" ORDER BY {ROWS} DESC, {', '.join(shown)} LIMIT {GROUPS_MAX}"
            )
            names = [column.name for column in self._shape.keys]
            groups += [
                Moved(kind, Between.KEYS, dict(zip(names, row[:-1], strict=True)), None, None, 0, int(row[-1]))
                for row in found
            ]
        return Comparison(Between.KEYS, counts, tuple(groups))

    def _compared(
        self, between: Between, one: str, other: str, kind: str, *, where: str = "", joined: str = ""
    ) -> Comparison:
        """Put the groups that differ into a table, count them by kind, and return the first of them."""
        name = self.named(f"diff_{between.value.replace(' ', '_')}_{one}_{other}")
        keys, values = self._shape.keys, self._shape.values
        picked = [f"coalesce(a.{quote(each.name)}, b.{quote(each.name)}) AS {quote(each.name)}" for each in keys]
        for place, column in enumerate(values):
            picked += [f"{side}.{quote(column.name)} AS {sql.quote(f'{side}:{place}')}" for side in ("a", "b")]
        moved = " + ".join(f"abs({self._size('b', each)} - {self._size('a', each)})" for each in self._shape.numbers)
        self._session.execute(
            f"CREATE TABLE {name} AS SELECT {kind} AS {KIND}, {', '.join(picked)}, coalesce(a.{ROWS}, 0) AS rows_a,"
            f" coalesce(b.{ROWS}, 0) AS rows_b, {moved or '0'} AS {sql.MOVED}"
            f" FROM {self._folded(one, where)} AS a FULL JOIN {self._folded(other, where)} AS b"
            f" ON {' AND '.join(self._equal('a', 'b'))} {joined}"
            f" WHERE a.{ROWS} IS NULL OR b.{ROWS} IS NULL OR a.{ROWS} <> b.{ROWS} OR a.{TOTAL} <> b.{TOTAL}"
        )
        counts = {
            Group(word): int(counted)
            for word, counted in self._session.execute(f"SELECT {KIND}, count(*) FROM {name} GROUP BY 1 ORDER BY 1")
        }
        groups = self._groups(name, between) if counts else ()
        return Comparison(between, counts, groups, self._columns(name) if counts else ())

    def _groups(self, name: str, between: Between) -> tuple[Moved, ...]:
        keys, values = self._shape.keys, self._shape.values
        shown = [self._shown(quote(column.name), column) for column in keys]
        sides = [f"{quote(f'{side}:{place}')}" for side in ("a", "b") for place in range(len(values))]
        rows = self._session.execute(
            f"SELECT {KIND}, rows_a, rows_b, {', '.join([*shown, *sides])} FROM {name}"
            f" ORDER BY {sql.MOVED} DESC, {', '.join(shown)} LIMIT {GROUPS_MAX}"
        )
        return tuple(self._moved(between, row) for row in rows)

    def _moved(self, between: Between, row: Sequence[Any]) -> Moved:
        keys, values = self._shape.keys, self._shape.values
        kind, rows_a, rows_b, *cells = row
        key = dict(zip((each.name for each in keys), map(_plain, cells[: len(keys)]), strict=True))
        sides: list[dict[str, Any] | None] = []
        for start, rows in ((len(keys), rows_a), (len(keys) + len(values), rows_b)):
            found = zip(values, cells[start : start + len(values)], strict=True)
            sides.append({each.name: _value(value, each) for each, value in found} if rows else None)
        return Moved(Group(kind), between, key, sides[0], sides[1], int(rows_a), int(rows_b))

    def _columns(self, name: str) -> tuple[str, ...]:
        """Name the columns that differ in a group that has one row on both sides."""
        values = self._shape.values
        if not values:
            return ()
        differ = [f"count(*) FILTER (WHERE {self._differs(place)})" for place in range(len(values))]
        row = self._session.execute(f"SELECT {', '.join(differ)} FROM {name} WHERE rows_a = rows_b AND rows_a > 0")[0]
        return tuple(column.name for column, counted in zip(values, row, strict=True) if counted)

    def _differs(self, place: int) -> str:
        return f"{quote(f'a:{place}')} IS DISTINCT FROM {quote(f'b:{place}')}"

    def _folded(self, name: str, where: str = "") -> str:
        """Return the groups of a copy: rows per key, the sum of their hashes, and each column folded to one value."""
        listed = sql.column_list(column.name for column in self._shape.keys)
        folds = [
            f"{_fold(column)}({self._shown(quote(column.name), column)}) AS {quote(column.name)}"
            for column in self._shape.values
        ]
        picked = ", ".join([listed, f"count(*) AS {ROWS}", f"sum({HASH}) AS {TOTAL}", *folds])
        return f"(SELECT {picked} FROM {self.named(name)} {where} GROUP BY {listed})"

    def _is_doubled(self, *, again: bool = False) -> str:
        """Return the condition that b holds what a holds several times over: in more rows, or in larger numbers.

        With `again` also where a, or a part of which a holds several, was added once more: 2, 4, 6. A number that
        stays, such as an average, says nothing.
        """
        moved, whole = ["false"], []
        for column in self._shape.numbers:
            a, b = (f"{side}.{quote(column.name)}" for side in ("a", "b"))
            times = f"({b} / nullif({a}, 0) >= 2 AND {b} % nullif({a}, 0) = 0)"
            if again:
                times = f"({times} OR ({b} / nullif({a}, 0) > 1 AND {a} % nullif({b} - {a}, 0) = 0))"
            moved.append(f"coalesce({times}, false)")
            whole.append(f"({a} IS NOT DISTINCT FROM {b} OR coalesce({times}, false))")
        return f"(b.{ROWS} > a.{ROWS} OR (({' OR '.join(moved)}) AND {' AND '.join(whole) or 'true'}))"

    def _size(self, side: str, column: Column) -> str:
        return f"coalesce(CAST({side}.{quote(column.name)} AS {self._dialect.magnitude}), 0)"

    def _equal(self, left: str, right: str) -> list[str]:
        return [
            self._dialect.equal(f"{left}.{quote(each.name)}", f"{right}.{quote(each.name)}", each)
            for each in self._shape.keys
        ]

    def _plain(self, column: Column) -> str:
        """Return a column of the table as the evidence keeps it."""
        live = self._shape.target.column(column.name)
        value = quote(column.name)
        if live.family is Family.OTHER:
            value = f"CAST({value} AS {column.type})"
        return self._dialect.plain(value, column)

    def _hash(self) -> str:
        texts = [
            f"coalesce('V' || {self._dialect.canonical(quote(each.name), each, self._shape.scales[each.name])}, 'N')"
            for each in sorted(self._shape.columns, key=lambda column: column.name)
        ]
        return self._dialect.row_hash(self._dialect.joined(texts))

    def _shown(self, expression: str, column: Column) -> str:
        return self._dialect.shown(expression, column, self._shape.scales.get(column.name))


def _fold(column: Column) -> str:
    return "sum" if column.family.is_number else "bool_and" if column.family is Family.BOOLEAN else "min"


def _value(value: Any, column: Column) -> Any:
    return exact_number(value, column.family) if column.family.is_number else _plain(value)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int) or hasattr(value, "as_tuple") else str(value)
