"""The columns a query returns, each followed through subqueries and WITH to the expression that makes it; its grain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from reslice.contract import Unit
from reslice.reading.nodes import Node, every

_DEPTH_LIMIT = 30
_UNITS = {
    "HOUR": Unit.HOUR,
    "HH": Unit.HOUR,
    "DAY": Unit.DAY,
    "DD": Unit.DAY,
    "D": Unit.DAY,
    "WEEK": Unit.WEEK,
    "WEEK(MONDAY)": Unit.WEEK,
    "ISOWEEK": Unit.WEEK,
    "MONTH": Unit.MONTH,
    "MM": Unit.MONTH,
    "QUARTER": Unit.QUARTER,
    "Q": Unit.QUARTER,
}
_NAMED_UNITS = {
    "tostartofhour": Unit.HOUR,
    "tostartofday": Unit.DAY,
    "todate": Unit.DAY,
    "to_date": Unit.DAY,
    "tostartofmonth": Unit.MONTH,
    "tostartofquarter": Unit.QUARTER,
    "tomonday": Unit.WEEK,
}
_LENGTHS = (Unit.HOUR, Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.QUARTER)
_TRUNCATIONS = (exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc)
_DAYS = (exp.Date, exp.TsOrDsToDate, exp.TimestampFromParts)


@dataclass(slots=True)
class Output:
    """One column of a query: its name, the expression that makes it, and the SELECT in which that stands.

    `node` is the projection itself, None where a star brings the column along.
    """

    name: str
    node: exp.Expr | None
    origin: exp.Expr | None
    select: exp.Select | None


class JobQuery:
    """A query with its WITH expressions by name. `dialect` is that of the database, in which parts of it are said."""

    def __init__(self, tree: exp.Query, dialect: str) -> None:
        self.tree = tree
        self.dialect = dialect
        self.named: dict[str, exp.Query] = {}
        for each in self.parts(tree, exp.CTE):
            if isinstance(each.this, exp.Query):
                self.named.setdefault(each.alias.lower(), each.this)

    def know(self, more: Mapping[str, exp.Query]) -> None:
        """Take in queries by name; a name that is known already stays what it is."""
        self.named.update({name: query for name, query in more.items() if name not in self.named})

    def parts(self, tree: exp.Expr, *kinds: type[Node]) -> list[Node]:
        """Return the parts of the query, or of one that it knows by name, that are of some kinds."""
        return every(tree, *kinds)

    def shown(self, part: exp.Expr) -> str:
        """Return a part of the query as a person would write it for the database."""
        return part.sql(self.dialect)

    def outputs(self) -> list[Output]:
        """Return the columns of the query, in order."""
        return self.outputs_of(self.tree)

    def outputs_of(self, query: exp.Expr) -> list[Output]:
        """Return the columns of one of the queries within, in order."""
        return list(self._outputs(query, 0))

    def select(self) -> exp.Select:
        """Return the SELECT whose names and groups are the query's; of a UNION the first."""
        return _first(self.tree)

    def _outputs(self, query: exp.Expr, depth: int) -> Iterator[Output]:
        if depth > _DEPTH_LIMIT or not isinstance(query, exp.Query):
            return
        select = _first(query)
        for projection in select.expressions:
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                table = projection.table.lower() if isinstance(projection, exp.Column) else ""
                for alias, inner in self.relations(select).items():
                    if inner is not None and table in ("", alias):
                        for each in self._outputs(inner, depth + 1):
                            yield Output(each.name, None, each.origin, each.select)
            else:
                value = projection.unalias()
                yield Output(projection.alias_or_name, projection, *self.traced(value, select, depth))

    def relations(self, select: exp.Select) -> Mapping[str, exp.Query | None]:
        """Return what a SELECT reads by alias; None stands for a table of the database."""
        found: dict[str, exp.Query | None] = {}
        start = select.args.get("from_")
        joined = [join.this for join in select.args.get("joins") or []]
        for each in [*([start.this] if start is not None else []), *joined]:
            alias = each.alias_or_name.lower()
            if isinstance(each, exp.Table):
                found[alias] = self._with(each, select)
            elif isinstance(each, exp.Subquery) and isinstance(each.this, exp.Query):
                found[alias] = each.this
        return found

    def _with(self, table: exp.Table, select: exp.Select) -> exp.Query | None:
        """Return the query of the WITH that a name stands for; within itself and those before it, it is a table's."""
        found = self.named.get(table.name.lower()) if not table.args.get("db") else None
        hidden = _not_seen_from(select, table.name.lower()) if found is not None else []
        return None if any(each is found for each in hidden) else found

    def tables(self, select: exp.Select) -> dict[str, str]:
        """Return the tables of the database that a SELECT reads itself: alias and name, in small letters."""
        start = select.args.get("from_")
        read = [*([start.this] if start is not None else []), *(join.this for join in select.args.get("joins") or [])]
        return {
            each.alias_or_name.lower(): each.name.lower()
            for each in read
            if isinstance(each, exp.Table) and self._with(each, select) is None
        }

    def traced(self, value: exp.Expr, select: exp.Select, depth: int = 0) -> tuple[exp.Expr, exp.Select]:
        """Follow a bare column through the queries it comes from, to the expression that makes it."""
        inner = self._inner(value, select) if isinstance(value, exp.Column) and depth < _DEPTH_LIMIT else None
        if inner is None:
            return value, select
        found = self._column(inner, value.name.lower(), depth + 1, set())
        return (value, select) if found is None else found

    def _column(self, query: exp.Expr, name: str, depth: int, seen: set[int]) -> tuple[exp.Expr, exp.Select] | None:
        """Return the expression that makes a column of a query, and its SELECT; None where the query does not say."""
        if depth > _DEPTH_LIMIT or not isinstance(query, exp.Query) or id(query) in seen:
            return None
        seen.add(id(query))
        select = _first(query)
        for projection in select.expressions:
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                table = projection.table.lower() if isinstance(projection, exp.Column) else ""
                for alias, inner in self.relations(select).items():
                    if inner is not None and table in ("", alias):
                        found = self._column(inner, name, depth + 1, seen)
                        if found is not None:
                            return found
            elif projection.alias_or_name.lower() == name:
                return self.traced(projection.unalias(), select, depth)
        return None

    def _inner(self, column: exp.Column, select: exp.Select) -> exp.Query | None:
        relations = self.relations(select)
        if column.table:
            return relations.get(column.table.lower())
        name = column.name.lower()
        for inner in relations.values():
            if inner is not None and name in self.names(inner):
                return inner
        return next(iter(relations.values())) if len(relations) == 1 else None

    def names(self, query: exp.Query) -> frozenset[str]:
        """Return the names, in small letters, of the columns that a query names itself."""
        return frozenset(each.alias_or_name.lower() for each in _first(query).expressions)

    def names_behind(self, value: exp.Expr, select: exp.Select) -> frozenset[str]:
        """Return the names, in small letters, of every column that a value is made from, at each level."""
        found: set[str] = set()
        pending = [(value, select, 0)]
        seen: set[int] = set()
        while pending:
            each, where, depth = pending.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            for column in each.find_all(exp.Column):
                found.add(column.name.lower())
                origin, origin_select = self.traced(column, where)
                if origin is not column and depth < _DEPTH_LIMIT:
                    pending.append((origin, origin_select, depth + 1))
        return frozenset(found)


def _not_seen_from(select: exp.Select, name: str) -> list[exp.Expr]:
    """Return the queries of that name that a SELECT is within, or that come after the one it is within."""
    found: list[exp.Expr] = []
    node: exp.Expr | None = select
    while node is not None:
        if isinstance(node, exp.CTE) and isinstance(node.parent, exp.With):
            later = node.parent.expressions[node.index or 0 :]
            found += [each.this for each in later if each.alias.lower() == name]
        node = node.parent
    return found


def _first(query: exp.Expr) -> exp.Select:
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query if isinstance(query, exp.Select) else exp.select()


@dataclass(frozen=True, slots=True)
class JobGrain:
    """The names a query groups by, how it says so, and what is not sure about it. `names` None: it does not group."""

    names: tuple[str, ...] | None
    why: str = ""
    unsure: tuple[str, ...] = ()


def grain(query: JobQuery, outputs: Sequence[Output]) -> JobGrain:
    """Return the columns of `outputs` that a query has one row for each combination of."""
    return _grain(query, query.tree, outputs, 0)


def _grain(query: JobQuery, tree: exp.Expr, outputs: Sequence[Output], depth: int) -> JobGrain:
    select = _first(tree)
    doubts = []
    if isinstance(tree, exp.SetOperation):
        doubts.append(f"grain: of the {tree.key.upper()} the first SELECT was read; its parts may share keys")
    group = select.args.get("group")
    if group is not None:
        return _grouped(select, group, outputs, doubts)
    if select.args.get("distinct"):
        return JobGrain(tuple(each.name for each in outputs), "SELECT DISTINCT", tuple(doubts))
    qualified = _qualified(select, outputs)
    if qualified:
        return JobGrain(qualified, "the PARTITION BY of its QUALIFY", tuple(doubts))
    has_aggregate = any(each.find(exp.AggFunc) for each in select.expressions)
    inner = list(query.relations(select).items())
    grouped = [(alias, found) for alias, found in inner if found is not None]
    if has_aggregate or not grouped or depth > _DEPTH_LIMIT:
        return JobGrain(None, "", tuple(doubts))
    below = _grain(query, grouped[0][1], list(query.outputs_of(grouped[0][1])), depth + 1)
    if below.names is None:
        return JobGrain(None, "", tuple(doubts))
    if len(inner) > 1:
        doubts.append("grain: the query joins after it groups; a join that matches twice repeats a key")
    outer = {
        each.node.unalias().name.lower() if each.node is not None else each.name.lower(): each.name
        for each in outputs
        if each.node is None or isinstance(each.node.unalias(), exp.Column)
    }
    names = tuple(outer[name.lower()] for name in below.names if name.lower() in outer)
    lost = [name for name in below.names if name.lower() not in outer]
    doubts += [f"grain: the job groups by {name}, which it does not write" for name in lost]
    return JobGrain(names, below.why, (*doubts, *below.unsure))


def _grouped(select: exp.Select, group: exp.Group, outputs: Sequence[Output], doubts: list[str]) -> JobGrain:
    written = [each for each in outputs if each.node is not None]
    if group.args.get("all"):
        plain = tuple(each.name for each in written if each.node is not None and each.node.find(exp.AggFunc) is None)
        return JobGrain(plain, "GROUP BY ALL", tuple(doubts))
    names: list[str] = []
    lost: list[str] = []
    for item in group.expressions:
        if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets):
            doubts.append(_subtotals(item.key.replace("groupingsets", "grouping sets")))
            for column in item.find_all(exp.Column):
                name = grouped_name(column, written)
                names += [name] if name is not None else []
            continue
        name = grouped_name(item, written)
        if name is not None:
            names.append(name)
        else:
            lost.append(item.sql())
    for kind in ("grouping_sets", "rollup", "cube"):
        if group.args.get(kind):
            doubts.append(_subtotals(kind.replace("_", " ")))
            for each in group.args[kind]:
                for column in each.find_all(exp.Column):
                    name = grouped_name(column, written)
                    names += [name] if name is not None and name not in names else []
    doubts += [f"grain: the job groups by {text}, which it does not write, so that keys may repeat" for text in lost]
    return JobGrain(tuple(dict.fromkeys(names)), "GROUP BY", tuple(doubts))


def _subtotals(kind: str) -> str:
    return f"grain: {kind.upper()} adds rows of subtotals, whose keys are NULL"


def grouped_name(item: exp.Expr, written: Sequence[Output]) -> str | None:
    """Return the name of the column that a GROUP BY item is: a position, an alias, a column, or the expression."""
    if isinstance(item, exp.Literal) and not item.is_string:
        place = int(item.name) - 1 if item.name.isdigit() else -1
        return written[place].name if 0 <= place < len(written) else None
    for each in written:
        assert each.node is not None, "written columns have a projection"
        if each.node.unalias() == item:
            return each.name
    if isinstance(item, exp.Column):
        # Columns before aliases, as the standard has it; then without regard to the table they are written with.
        for each in written:
            assert each.node is not None, "written columns have a projection"
            value = each.node.unalias()
            if isinstance(value, exp.Column) and value.name.lower() == item.name.lower():
                return each.name
        for each in written:
            if each.name.lower() == item.name.lower() and not item.table:
                return each.name
    return None


def _qualified(select: exp.Select, outputs: Sequence[Output]) -> tuple[str, ...]:
    """Return the columns that a QUALIFY row_number() … = 1 keeps one row of."""
    qualify = select.args.get("qualify")
    window = qualify.find(exp.Window) if qualify is not None else None
    if window is None or not isinstance(window.this, exp.RowNumber):
        return ()
    written = [each for each in outputs if each.node is not None]
    has_star = any(each.is_star for each in select.expressions)
    names = [
        grouped_name(each, written) or (each.name if has_star and isinstance(each, exp.Column) else None)
        for each in window.args.get("partition_by") or []
    ]
    return tuple(name for name in names if name is not None)


def unit_of(value: exp.Expr) -> Unit | None:
    """Return the longest unit that an expression cuts a time to; None when it cuts none."""
    units = [unit for each in value.walk() for unit in [_cut(each)] if unit is not None]
    return max(units, key=_LENGTHS.index) if units else None


def _cut(part: exp.Expr) -> Unit | None:
    if isinstance(part, _TRUNCATIONS):
        unit = part.args.get("unit")
        text = unit.sql() if isinstance(unit, exp.WeekStart) else unit.name if unit is not None else ""
        return _UNITS.get(text.upper())
    if isinstance(part, exp.Anonymous):
        return _NAMED_UNITS.get(str(part.this).lower())
    return Unit.DAY if is_day(part) else None


def is_day(value: exp.Expr) -> bool:
    """Whether an expression makes a day of a time."""
    if isinstance(value, exp.Cast | exp.TryCast):
        return bool(value.to.this == exp.DataType.Type.DATE) and value.this.find(exp.Column) is not None
    if isinstance(value, exp.Convert):
        return bool(value.this.this == exp.DataType.Type.DATE)
    return isinstance(value, _DAYS) and value.find(exp.Column) is not None


def zone_of(value: exp.Expr) -> str:
    """Return the time zone that an expression reads an instant in; empty when it names none."""
    for each in value.find_all(exp.AtTimeZone, exp.ConvertTimezone):
        zone = each.args.get("zone") or each.args.get("target_tz")
        if isinstance(zone, exp.Literal) and zone.is_string:
            return zone.name
    return ""
