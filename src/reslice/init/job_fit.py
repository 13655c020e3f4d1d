"""What a database does not take as sqlglot writes it for it, put in its own words; the meaning stays."""

from __future__ import annotations

from sqlglot import exp

from reslice.tables import Family, Target


def fit(tree: exp.Query, dialect: str, target: Target | None) -> None:
    """Change a query in place so that the database of a dialect understands it, and gives a table's days as days."""
    if dialect != "postgres":
        return
    for select in tree.find_all(exp.Select):
        _name_groups(select)
    if isinstance(tree, exp.Select) and target is not None:
        days = {column.name.lower() for column in target.columns if column.family is Family.DATE}
        for item in tree.expressions:
            if item.alias_or_name.lower() in days:
                _as_day(item)


def _name_groups(select: exp.Select) -> None:
    """Write GROUP BY ALL out, which PostgreSQL 18 does not have."""
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    keys = [item.unalias().copy() for item in select.expressions if item.find(exp.AggFunc) is None]
    select.set("group", exp.Group(expressions=keys) if keys else None)


def _as_day(item: exp.Expr) -> None:
    """Cast a day that is cut to a unit: date_trunc of PostgreSQL makes a time of it."""
    value = item.unalias()
    if isinstance(value, exp.DateTrunc | exp.TimestampTrunc | exp.DatetimeTrunc):
        value.replace(exp.Cast(this=value.copy(), to=exp.DataType.build("date")))
