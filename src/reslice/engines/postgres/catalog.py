"""What there is in a PostgreSQL database, read from its own catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reslice.engines.postgres.types import family_of
from reslice.engines.session import Session
from reslice.tables import Column, Fill

TYPES = (
    " CROSS JOIN LATERAL (WITH RECURSIVE made_of AS (SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod,"
    " a.atttypmod AS modifier FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid"
    " UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, m.typtypmod FROM made_of AS m"
    " JOIN pg_catalog.pg_type AS t ON t.oid = m.typbasetype WHERE m.typtype = 'd')"
    " SELECT oid, typtype, modifier FROM made_of WHERE typtype <> 'd') AS y"
)
"""The type of an attribute `a`: of a domain, also of one that is made of another, the type at its bottom."""

BASE_TYPE = "pg_catalog.format_type(y.oid, y.modifier)"
TYPE = "pg_catalog.format_type(a.atttypid, a.atttypmod)"
KIND = "y.typtype"


class Parser(Session, Protocol):
    """A session that can ask what a statement would return."""

    def parsed(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[str, int, int]]:
        """Return name, type and modifier of each column that a statement would return; it is not executed."""


def column_of(name: str, type_text: str, base: str, kind: str, fill: Fill = Fill.PLAIN) -> Column:
    """Return a column by its type and the type at the bottom of that."""
    return Column(name, type_text, family_of(base, kind), fill, base="" if base == type_text else base)


def columns_in(session: Session, schema: str) -> list[tuple[str, str, str]]:
    """Return the columns of the tables and views of a schema that this role may read: table, column, type, in order."""
    rows = session.execute(
        f"SELECT c.relname, a.attname, {TYPE} FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $schema"
        " AND has_schema_privilege(oid, 'USAGE')) AND a.attnum > 0 AND NOT a.attisdropped"
        " AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_table_privilege(c.oid, 'SELECT')"
        " ORDER BY c.relname, a.attnum",
        {"schema": schema},
    )
    return [(table, column, type_text) for table, column, type_text in rows]


def columns_of(session: Session, table: str) -> tuple[Column, ...]:
    """Return the columns of a relation by its qualified, quoted name."""
    rows = session.execute(
        f"SELECT a.attname, {TYPE}, {BASE_TYPE}, {KIND} FROM pg_catalog.pg_attribute AS a{TYPES}"
        " WHERE a.attrelid = CAST($name AS regclass) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        {"name": table},
    )
    return tuple(column_of(*row) for row in rows)


def select_columns(session: Parser, select: str, values: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a SELECT that the server only reads; rights are not looked at."""
    columns = session.parsed(select, values)
    rows = session.execute(
        f"SELECT {TYPE}, {BASE_TYPE}, {KIND} FROM unnest(CAST($types AS oid[]), CAST($modifiers AS integer[]))"
        f" WITH ORDINALITY AS a (atttypid, atttypmod, place){TYPES} ORDER BY a.place",
        {"types": [each[1] for each in columns], "modifiers": [each[2] for each in columns]},
    )
    return tuple(column_of(name, *row) for (name, *_), row in zip(columns, rows, strict=True))


def shape_of(session: Session, table: str | int) -> str:
    """Return what changes with a table, its columns and what hangs on it, cheaply; not readable.

    A table that is given by its number needs no right on its schema. The answer begins with that number. What hangs on
    a table are foreign keys that point at it, triggers, rules, row policies, and tables that inherit from it.
    """
    kind = "regclass" if isinstance(table, str) else "oid"
    rows = session.execute(
        "SELECT concat_ws(' ', c.oid, c.relhassubclass, c.relhasrules, c.relrowsecurity, c.relforcerowsecurity,"
        " (SELECT string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod, attisdropped), ',' ORDER BY attnum)"
        " FROM pg_catalog.pg_attribute WHERE attrelid = c.oid),"
        " (SELECT string_agg(concat_ws(' ', oid, confdeltype), ',' ORDER BY oid)"
        " FROM pg_catalog.pg_constraint WHERE confrelid = c.oid AND contype = 'f'),"
        " (SELECT string_agg(concat_ws(' ', oid, tgenabled), ',' ORDER BY oid)"
        " FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal))"
        f" FROM pg_catalog.pg_class AS c WHERE c.oid = CAST($name AS {kind})",
        {"name": table},
    )
    return str(rows[0][0])


def ledgers(session: Session) -> list[tuple[str, str]]:
    """Return database and schema of every ledger that this role may read."""
    rows = session.execute(
        "SELECT current_database(), n.nspname FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid"
        " WHERE c.relname = 'runs' AND c.relkind = 'r' AND a.attname = 'contract_digest' AND NOT a.attisdropped"
        " AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') ORDER BY n.nspname"
    )
    return [(catalog, schema) for catalog, schema in rows]


def comment_on(session: Session, schema: str, name: str) -> str | None:
    """Return the comment of the view of a name: `none` where it has none, empty for another thing, None for nothing."""
    rows = session.execute(
        "SELECT CASE WHEN c.relkind = 'v' THEN coalesce(obj_description(c.oid, 'pg_class'), 'none') ELSE '' END"
        " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $schema AND c.relname = $name",
        {"schema": schema, "name": name},
    )
    return rows[0][0] if rows else None
