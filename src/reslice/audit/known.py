"""What the audited files say about tables: their columns, and the keys the database enforces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

NOT_ENFORCED = frozenset(
    {"snowflake", "bigquery", "redshift", "databricks", "spark", "spark2", "hive", "clickhouse", "trino", "presto"}
    | {"athena", "fabric", "dremio", "drill", "druid", "doris", "starrocks"}
)
"""Dialects of databases that accept a primary or unique key and do not hold rows to it (their own manuals)."""
REPLACING = frozenset({"doris", "starrocks"})
"""Dialects of databases in which an insert of a key that is there takes the place of its row."""
_UNIQUE_INDEX = re.compile(
    r"unique\s+index\b.*?\bon\s+(?:only\s+)?(?P<table>[\w.\"]+)\s*(?:using\s+\w+\s*)?\((?P<columns>[\w\s,\"]+)\)"
    r"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


def name_of(table: exp.Expr | None) -> str:
    """Return the last part of a table's name in small letters; empty where there is none."""
    if isinstance(table, exp.Schema):
        table = table.this
    return table.name.lower() if isinstance(table, exp.Table) else ""


def column_names(parts: Iterable[exp.Expr]) -> tuple[str, ...]:
    """Return the names of columns as a key or an index lists them, in small letters; empty for an expression."""
    return tuple(_column_name(each) for each in parts)


def _column_name(part: exp.Expr) -> str:
    while isinstance(part, exp.Ordered | exp.ColumnPrefix | exp.Paren | exp.Column) and part.this is not None:
        part = part.this
    return part.name.lower() if isinstance(part, exp.Identifier | exp.Var) else ""


@dataclass(slots=True)
class Table:
    """A table that a CREATE TABLE, CREATE UNIQUE INDEX or ALTER TABLE of the audited files declares.

    Names are in small letters. `unique` holds the columns of each key that the database enforces; a primary key's
    columns are in `not_null` too. `nullable` are the columns that are said to take NULL. `equal_nulls` are those keys
    in which NULL equals NULL. `replacing` is the key by which a row that is inserted takes the place of another.
    `keys` are all that are declared, enforced or not.
    """

    name: str
    types: dict[str, exp.DataType] = field(default_factory=dict)
    not_null: set[str] = field(default_factory=set)
    nullable: set[str] = field(default_factory=set)
    unique: list[tuple[str, ...]] = field(default_factory=list)
    equal_nulls: list[tuple[str, ...]] = field(default_factory=list)
    replacing: tuple[str, ...] = ()
    keys: list[tuple[str, ...]] = field(default_factory=list)

    def is_key(self, columns: Iterable[str]) -> bool:
        """Whether rows with equal values in these columns cannot stand twice, and none of the values is NULL."""
        names = {each.lower() for each in columns}
        return any(set(key) <= names and set(key) <= self.not_null for key in self.unique)

    def takes_null(self, column: str) -> bool:
        """Whether a column is declared so that NULL is meant to be possible.

        It says so, or says nothing where the table says of others that they take none.
        """
        if column in self.not_null or column not in self.types:
            return False
        return column in self.nullable or bool(self.not_null & self.types.keys())


Known = Mapping[str, Table]
"""Every declared table, by the last part of its name in small letters."""


def declared(statements: Iterable[exp.Expr], dialect: str) -> dict[str, Table]:
    """Return the tables that statements declare."""
    found: dict[str, Table] = {}
    for each in statements:
        if isinstance(each, exp.Create) and each.kind == "TABLE" and isinstance(each.this, exp.Schema):
            table = found.setdefault(name_of(each.this), Table(name_of(each.this)))
            _columns(table, each.this, dialect)
            _properties(table, each)
        elif isinstance(each, exp.Create) and each.kind == "INDEX" and each.args.get("unique"):
            _index(found, each, dialect)
        elif isinstance(each, exp.Command) and str(each.this).lower() == "create":
            _unread_index(found, str(each.args.get("expression") or ""), dialect)
        elif isinstance(each, exp.Alter) and each.kind == "TABLE":
            table = found.setdefault(name_of(each.this), Table(name_of(each.this)))
            for action in each.args.get("actions") or []:
                _altered(table, action)
                for part in action.walk():
                    _constraint(table, part, dialect)
    return found


def _columns(table: Table, schema: exp.Schema, dialect: str) -> None:
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            name = part.name.lower()
            if isinstance(part.kind, exp.DataType):
                table.types[name] = part.kind
                if part.kind.args.get("nullable") is not None:  # ClickHouse: no column takes NULL but a Nullable one
                    (table.nullable if part.kind.args["nullable"] else table.not_null).add(name)
            for constraint in part.constraints:
                kind = constraint.kind
                if isinstance(kind, exp.NotNullColumnConstraint):
                    (table.nullable if kind.args.get("allow_null") else table.not_null).add(name)
                elif isinstance(kind, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint):
                    _key(table, (name,), isinstance(kind, exp.PrimaryKeyColumnConstraint), dialect)
        else:
            _constraint(table, part, dialect)
            if isinstance(part, exp.Constraint):
                _constraints(table, part.expressions, dialect)


def _constraints(table: Table, parts: list[exp.Expr], dialect: str) -> None:
    """Take in a named constraint; T-SQL's says what it is and lists the columns beside it."""
    is_primary = any(isinstance(each, exp.PrimaryKeyColumnConstraint) for each in parts)
    is_key = is_primary or any(isinstance(each, exp.UniqueColumnConstraint) and each.this is None for each in parts)
    for each in parts:
        _constraint(table, each, dialect)
        if is_key and isinstance(each, exp.ClusteredColumnConstraint | exp.NonClusteredColumnConstraint):
            columns = each.this if isinstance(each.this, list) else []
            _key(table, column_names(columns), is_primary, dialect)


def _constraint(table: Table, part: exp.Expr, dialect: str) -> None:
    if isinstance(part, exp.PrimaryKey):
        _key(table, column_names(part.expressions), True, dialect)
    elif isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        columns = column_names(part.this.expressions)
        _key(table, columns, False, dialect)
        if part.args.get("nulls"):
            table.equal_nulls.append(columns)


def _altered(table: Table, action: exp.Expr) -> None:
    """Take in what an ALTER TABLE says of whether a column takes NULL."""
    if isinstance(action, exp.AlterColumn) and "allow_null" in action.args and action.args["allow_null"] is not None:
        name = action.name.lower()
        (table.nullable if action.args["allow_null"] else table.not_null).add(name)


def _properties(table: Table, create: exp.Create) -> None:
    """Take in by which columns an engine that replaces rows tells them apart."""
    properties = create.args.get("properties")
    if properties is None:
        return
    names = {each.this.name.lower() for each in properties.find_all(exp.EngineProperty)}
    order = properties.find(exp.Order)
    if order is not None and any("replacingmergetree" in each for each in names):
        columns = [column.name.lower() for column in order.find_all(exp.Column)]
        plain = column_names(order.expressions)
        table.replacing = plain if all(plain) else tuple(columns)
    unique = properties.find(exp.UniqueKeyProperty)
    if unique is not None:
        table.replacing = column_names(unique.expressions)


def _index(found: dict[str, Table], create: exp.Create, dialect: str) -> None:
    index = create.this
    name = name_of(index.args.get("table"))
    parameters = index.args.get("params")
    if not name or not isinstance(parameters, exp.IndexParameters) or parameters.args.get("where"):
        return
    columns = column_names(parameters.args.get("columns") or [])
    if columns and all(columns):
        _key(found.setdefault(name, Table(name)), columns, False, dialect)


def _unread_index(found: dict[str, Table], text: str, dialect: str) -> None:
    """Take in a CREATE UNIQUE INDEX in which NULLs are equal: it is not read as one."""
    index = _UNIQUE_INDEX.match(text.strip())
    if index is None or "where" in index["rest"].lower():
        return
    name = index["table"].split(".")[-1].strip('"').lower()
    columns = tuple(each.strip().strip('"').lower() for each in index["columns"].split(","))
    table = found.setdefault(name, Table(name))
    _key(table, columns, False, dialect)
    if re.search(r"nulls\s+not\s+distinct", index["rest"], re.IGNORECASE):
        table.equal_nulls.append(columns)


def _key(table: Table, columns: tuple[str, ...], is_primary: bool, dialect: str) -> None:
    if not columns or not all(columns):
        return
    table.keys.append(columns)
    if is_primary and dialect in REPLACING:
        table.replacing = columns
    if dialect not in NOT_ENFORCED:
        table.unique.append(columns)
        if is_primary:
            table.not_null.update(columns)
