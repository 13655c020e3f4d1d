"""How DuckDB describes a table: its resolved name, columns and types, and what points at it or protects it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reslice.contract import Contract, Method
from reslice.engines.duckdb.dialect import family_of
from reslice.engines.duckdb.session import spelled
from reslice.engines.names import name_parts, near_table
from reslice.engines.sql import quote
from reslice.engines.view import with_versions
from reslice.errors import Failure, Refused
from reslice.tables import Column, Fill, Target

if TYPE_CHECKING:
    from reslice.engines.session import Catalog, Session

NEXT_VALUE = re.compile(r"\s*(?:CAST\s*\(\s*)?nextval\s*\(", re.IGNORECASE)


def describe(session: Catalog, contract: Contract, path: Path | None) -> Target:
    """Describe the live table or view of the contract; columns carry the contract's spelling.

    Raises Refused[target_missing] when nothing has that name.
    """
    found = _find(session, name_parts(contract.table))
    if found is None:
        raise _missing(session, contract)
    target = described(session, found, (*contract.columns, *(stamp.column for stamp in contract.stamps)), path)
    return with_versions(session, contract, target) if contract.method is Method.APPEND_VERSION else target


def described(session: Session, found: tuple[str, str, str, str], wanted: tuple[str, ...], path: Path | None) -> Target:
    """Describe what `resolve` has found; columns carry the spelling of `wanted`."""
    catalog, schema, table, kind = found
    parameters = {"catalog": catalog, "schema": schema, "table": table}
    rows = session.execute(
        "SELECT column_name, data_type, column_default FROM duckdb_columns() WHERE database_name = $catalog"
        " AND schema_name = $schema AND table_name = $table ORDER BY column_index",
        parameters,
    )
    generated = _generated(session, parameters)
    constraints = _constraints(session, parameters)
    columns = tuple(
        Column(spelled(name, wanted), type_text, family_of(type_text), _fill(name, default, generated))
        for name, type_text, default in rows
    )
    return Target(
        catalog,
        schema,
        table,
        kind,
        columns,
        tuple(sorted({name for word, name, _ in constraints if word == "REFERENCED BY"})),
        _rights(session, catalog, path),
        keyed=_covered(columns, [names for word, _, names in constraints if word in KEYS]),
        not_null=_covered(columns, [names for word, _, names in constraints if word == "NOT NULL"]),
        keys=_unique_keys(columns, constraints),
    )


def resolve(session: Session, name: str) -> tuple[str, str, str, str] | None:
    """Return catalog, schema, name and kind of the table or view that `name` means on a connection; None if none."""
    return _find(session, name_parts(name))


def _find(session: Session, parts: list[str]) -> tuple[str, str, str, str] | None:
    """Find a table or view: of the current database first, then of the database that the first part names."""
    lowered = [part.lower() for part in parts]
    conditions = {
        1: ["lower(name) = $a AND catalog = current_database() AND schema = current_schema()"],
        2: [
            "lower(name) = $b AND catalog = current_database() AND lower(schema) = $a",
            "lower(name) = $b AND lower(catalog) = $a AND schema = 'main'",
        ],
        3: ["lower(name) = $c AND lower(catalog) = $a AND lower(schema) = $b"],
    }.get(len(parts), [])
    things = (
        "SELECT database_name AS catalog, schema_name AS schema, table_name AS name, 'table' AS kind"
        " FROM duckdb_tables() WHERE NOT internal AND NOT temporary"
        " UNION ALL SELECT database_name, schema_name, view_name, 'view' FROM duckdb_views() WHERE NOT temporary"
    )
    parameters: dict[str, Any] = dict(zip("abc", lowered, strict=False))
    for condition in conditions:
        rows = session.execute(
            f"SELECT catalog, schema, name, kind FROM ({things}) AS things WHERE {condition} ORDER BY kind", parameters
        )
        if rows:
            catalog, schema, name, kind = rows[0]
            return catalog, schema, name, kind
    return None


def _missing(session: Session, contract: Contract) -> Refused:
    rows = session.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY 1"
    )
    names = [row[0].removeprefix("main.") for row in rows if not row[0].startswith(f"{contract.ledger.schema}.")]
    near = near_table(contract.table, names)
    found = f"the database has no table {contract.table}" + (f"; did you mean {near}?" if near else "")
    asked = contract.quote("table", f"table: {contract.table}")
    failure = Failure("target_missing", asked, (found,), "create the table, or correct the contract")
    return Refused(contract.name, [failure], unchanged="nothing was written")


def _generated(session: Session, parameters: dict[str, Any]) -> frozenset[str]:
    """Return the generated columns. DuckDB 1.5 tells them only in the table's own SQL."""
    rows = session.execute(
        "SELECT column_name, data_type, sql FROM duckdb_tables() AS t JOIN duckdb_columns() AS c"
        " USING (database_name, schema_name, table_name) WHERE database_name = $catalog AND schema_name = $schema"
        " AND table_name = $table AND column_default IS NOT NULL",
        parameters,
    )
    return frozenset(
        name
        for name, type_text, text in rows
        if any(f"{written} {type_text} GENERATED ALWAYS AS" in (text or "") for written in (name, quote(name)))
    )


def _fill(name: str, default: str | None, generated: frozenset[str]) -> Fill:
    """Return who fills a column: a default that takes the next value of a sequence is an identity."""
    if name in generated:
        return Fill.GENERATED
    return Fill.IDENTITY if default and NEXT_VALUE.match(default) else Fill.PLAIN


UNIQUE_KEYS = ("PRIMARY KEY", "UNIQUE", "UNIQUE INDEX")
KEYS = frozenset({*UNIQUE_KEYS, "FOREIGN KEY", "INDEX"})


def _constraints(session: Session, parameters: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the constraints and indexes of the table, and the foreign keys that point at it: word, table, columns."""
    mine = "database_name = $catalog AND schema_name = $schema AND table_name = $table"
    table = "schema_name || '.' || table_name"
    rows = session.execute(
        f"SELECT constraint_type, {table}, array_to_string(constraint_column_names, chr(10))"
        f" FROM duckdb_constraints() WHERE {mine}"
        f" UNION ALL SELECT CASE WHEN is_unique THEN 'UNIQUE INDEX' ELSE 'INDEX' END, {table}, expressions"
        f" FROM duckdb_indexes() WHERE {mine}"
        f" UNION ALL SELECT 'REFERENCED BY', {table}, '' FROM duckdb_constraints()"
        " WHERE constraint_type = 'FOREIGN KEY' AND referenced_table = $table AND database_name = $catalog",
        parameters,
    )
    return [(word, name, names) for word, name, names in rows]


def _unique_keys(columns: Iterable[Column], constraints: Sequence[tuple[str, str, str]]) -> tuple[frozenset[str], ...]:
    """Return the column sets that the database keeps unique, the primary key first; an index of expressions is none."""
    found = []
    for wanted in UNIQUE_KEYS:
        for word, _, text in constraints:
            if word != wanted:
                continue
            names = text.split("\n") if word != "UNIQUE INDEX" else text.strip("[]").split(", ")
            plain = {name.strip("\"'").replace('""', '"').lower() for name in names}
            key = frozenset(column.name for column in columns if column.name.lower() in plain)
            if len(key) == len(plain):
                found.append(key)
    return tuple(dict.fromkeys(found))


def _covered(columns: Iterable[Column], named: Iterable[str]) -> frozenset[str]:
    """Return the columns whose names stand as words in a text: in a list of columns, or an index's expressions."""
    text = "\n".join(named)
    words = {column.name: rf"(?<!\w){re.escape(column.name)}(?!\w)" for column in columns}
    return frozenset(name for name, word in words.items() if re.search(word, text, re.IGNORECASE))


def _rights(session: Session, catalog: str, path: Path | None) -> tuple[str, ...]:
    """Say what keeps a run from writing: the file's mode, or how the caller attached it."""
    if path is not None:
        return rights_missing(path)
    rows = session.execute(
        "SELECT readonly FROM duckdb_databases() WHERE database_name = $catalog", {"catalog": catalog}
    )
    return ("the connection has the database attached read-only",) if rows and rows[0][0] else ()


def rights_missing(path: Path) -> tuple[str, ...]:
    """Say what of a database file this user may not write."""
    places = {"the database file": path, "the folder of the database file": path.parent}
    return tuple(f"this user may not write {words}" for words, place in places.items() if not os.access(place, os.W_OK))
