"""What the audited files say about tables: their columns, and the keys the database enforces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

NOT_ENFORCED = frozenset(
    {"snowflake", "bigquery", "redshift", "databricks", "spark", "spark2", "hive", "clickhouse", "trino", "presto"}
)
"""Dialects of databases that accept a primary or unique key and do not hold rows to it (their own manuals)."""


def name_of(table: exp.Expr | None) -> str:
    """Return the last part of a table's name in small letters; empty where there is none."""
    if isinstance(table, exp.Schema):
        table = table.this
    return table.name.lower() if isinstance(table, exp.Table) else ""


@dataclass(slots=True)
class Table:
    """A table that a CREATE TABLE, CREATE UNIQUE INDEX or ALTER TABLE of the audited files declares.

    Names are in small letters. `unique` holds the columns of each key that the database enforces; a primary key's
    columns are in `not_null` too.
    """

    name: str
    types: dict[str, exp.DataType] = field(default_factory=dict)
    not_null: set[str] = field(default_factory=set)
    unique: list[tuple[str, ...]] = field(default_factory=list)

    def is_key(self, columns: Iterable[str]) -> bool:
        """Whether rows with equal values in these columns cannot stand twice, and none of the values is NULL."""
        names = {each.lower() for each in columns}
        return any(set(key) <= names and set(key) <= self.not_null for key in self.unique)


Known = Mapping[str, Table]
"""Every declared table, by the last part of its name in small letters."""


def declared(statements: Iterable[exp.Expr], dialect: str) -> dict[str, Table]:
    """Return the tables that statements declare."""
    found: dict[str, Table] = {}
    for each in statements:
        if isinstance(each, exp.Create) and each.kind == "TABLE" and isinstance(each.this, exp.Schema):
            _columns(found.setdefault(name_of(each.this), Table(name_of(each.this))), each.this, dialect)
        elif isinstance(each, exp.Create) and each.kind == "INDEX" and each.args.get("unique"):
            _index(found, each, dialect)
        elif isinstance(each, exp.Alter) and each.kind == "TABLE":
            table = found.setdefault(name_of(each.this), Table(name_of(each.this)))
            for action in each.args.get("actions") or []:
                for part in action.walk():
                    _constraint(table, part, dialect)
    return found


def _columns(table: Table, schema: exp.Schema, dialect: str) -> None:
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            name = part.name.lower()
            if isinstance(part.kind, exp.DataType):
                table.types[name] = part.kind
            for constraint in part.constraints:
                kind = constraint.kind
                if isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
                    table.not_null.add(name)
                elif isinstance(kind, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint):
                    _key(table, (name,), isinstance(kind, exp.PrimaryKeyColumnConstraint), dialect)
        else:
            for inner in [part, *(part.expressions if isinstance(part, exp.Constraint) else [])]:
                _constraint(table, inner, dialect)


def _constraint(table: Table, part: exp.Expr, dialect: str) -> None:
    if isinstance(part, exp.PrimaryKey):
        _key(table, tuple(each.name.lower() for each in part.expressions), True, dialect)
    elif isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        _key(table, tuple(each.name.lower() for each in part.this.expressions), False, dialect)


def _index(found: dict[str, Table], create: exp.Create, dialect: str) -> None:
    index = create.this
    name = name_of(index.args.get("table"))
    parameters = index.args.get("params")
    if not name or not isinstance(parameters, exp.IndexParameters) or parameters.args.get("where"):
        return
    columns = [each.this if isinstance(each, exp.Ordered) else each for each in parameters.args.get("columns") or []]
    if columns and all(isinstance(each, exp.Column | exp.Identifier) for each in columns):
        table = found.setdefault(name, Table(name))
        _key(table, tuple(each.name.lower() for each in columns), False, dialect)


def _key(table: Table, columns: tuple[str, ...], is_primary: bool, dialect: str) -> None:
    if not columns or dialect in NOT_ENFORCED:
        return
    table.unique.append(columns)
    if is_primary:
        table.not_null.update(columns)
