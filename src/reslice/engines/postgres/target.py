"""How PostgreSQL describes a table: its resolved name, columns and types, and everything that hangs on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reslice.contract import Contract, Method
from reslice.engines.names import name_parts, near_table
from reslice.engines.postgres.catalog import BASE_TYPE, KIND, TYPE, TYPES, column_of, shape_of
from reslice.engines.postgres.rights import lacking_sequences, refuse_unreadable_versions
from reslice.engines.refusals import next_rights
from reslice.engines.session import Catalog, Session
from reslice.engines.view import with_versions
from reslice.errors import Failure, Refused
from reslice.tables import Column, Fill, Hindrance, Target

Found = tuple[int, str, str, str, str]
"""What a name means: oid, database, schema, name, and what kind of thing it is."""

NAME_BYTES = 63
"""How long a name may be; a server could be built with another limit, and none is."""

KINDS = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialised view",
    "f": "foreign table",
    "S": "sequence",
    "c": "type",
}


def describe(session: Catalog, contract: Contract) -> Target:
    """Describe the live table or view of the contract; Refused[target_missing] when nothing has that name."""
    found = resolve(session, contract.table) or closed(session, contract.table)
    if found is None:
        raise _missing(session, contract)
    target = described(session, found)
    if contract.method is not Method.APPEND_VERSION:
        return target
    refuse_unreadable_versions(session, contract, target)
    return with_versions(session, contract, target)


def resolve(session: Session, name: str) -> Found | None:
    """Return what a table name means on a connection: of the search path's schemas the first that has it.

    A part is taken as it is written, else in lower case, which is what SQL makes of a name without quotes.
    """
    parts = name_parts(name)
    for spelled in dict.fromkeys((tuple(parts), tuple(part.lower() for part in parts))):
        *before, table = spelled
        rows = session.execute(
            "SELECT CAST(c.oid AS bigint), current_database(), n.nspname, c.relname, c.relkind"
            " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE c.relname = $table AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'"
            " AND ($schema = '' AND n.nspname = ANY(current_schemas(false)) OR n.nspname = $schema)"
            " AND ($catalog = '' OR current_database() = $catalog)"
            " ORDER BY array_position(current_schemas(false), n.nspname) LIMIT 1",
            {
                "table": table,
                "schema": before[-1] if before else "",
                "catalog": before[-2] if len(before) == 2 else ("" if len(before) < 2 else "?"),
            },
        )
        if rows:
            oid, catalog, schema, relation, kind = rows[0]
            return oid, catalog, schema, relation, kind
    return None


def closed(session: Session, name: str) -> Found | None:
    """Return the table of a name in a schema that this role may not use, which no search path leads to."""
    *before, table = name_parts(name)
    rows = session.execute(
        "SELECT CAST(c.oid AS bigint), current_database(), n.nspname, c.relname, c.relkind"
        " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE $schemas = '' AND c.relname IN ($table, lower($table)) AND c.relkind IN ('r', 'p')"
        " AND n.nspname NOT LIKE 'pg\\_%' AND NOT has_schema_privilege(n.oid, 'USAGE')"
        " ORDER BY n.nspname <> 'public', n.nspname LIMIT 1",
        {"table": table, "schemas": "".join(before)},
    )
    return rows[0] if rows else None


def described(session: Session, found: Found) -> Target:
    """Describe what `resolve` has found."""
    oid, catalog, schema, table, relkind = found
    of = {"oid": oid}
    kind = KINDS.get(relkind, "thing")
    columns, not_null, fixed = _columns(session, of)
    if kind != "table":
        return Target(catalog, schema, table, kind, columns, rights_missing=())
    facts = session.execute(_FACTS, of)[0]
    references = session.execute(_REFERENCES, of)
    keys, keyed = _keys(session, of)
    return Target(
        catalog,
        schema,
        table,
        kind,
        columns,
        tuple(sorted({name for name, _ in references})),
        (*_rights(facts, schema, table), *lacking_sequences(session, oid, facts[11], f"{schema}.{table}")),
        keyed=keyed,
        not_null=not_null,
        keys=keys,
        hindrances=tuple(_hindrances(session, f"{schema}.{table}", facts, references)),
        remarks=tuple(_remarks(session, of)),
        readers=tuple(row[0] for row in session.execute(_READERS, of)),
        is_only_read=all(facts[3:5]) and not any(facts[5:8]),
        rights_next=_rights_next(facts),
        fixed=fixed,
        number=oid,
        shape=shape_of(session, oid),
        name_bytes_max=NAME_BYTES,
    )


def _columns(session: Session, of: dict[str, Any]) -> tuple[tuple[Column, ...], frozenset[str], frozenset[str]]:
    """Return the columns, those that must have a value, and those that no UPDATE may give one."""
    rows = session.execute(
        f"SELECT a.attname, {TYPE}, {BASE_TYPE}, {KIND}, a.attgenerated <> '', a.attidentity <> '',"
        " coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false), a.attnotnull, a.attidentity = 'a'"
        f" FROM pg_catalog.pg_attribute AS a{TYPES}"
        " LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
        " WHERE a.attrelid = CAST($oid AS oid) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        of,
    )
    columns, not_null, fixed = [], set(), set()
    for name, type_text, base, kind, is_generated, is_identity, is_serial, is_required, is_fixed in rows:
        fill = Fill.GENERATED if is_generated else Fill.IDENTITY if is_identity or is_serial else Fill.PLAIN
        columns.append(column_of(name, type_text, base, kind, fill))
        if is_required:
            not_null.add(name)
        if is_fixed:
            fixed.add(name)
    return tuple(columns), frozenset(not_null), frozenset(fixed)


_FACTS = """
SELECT
    c.relkind, c.relpersistence, row_security_active(c.oid),
    has_schema_privilege(c.relnamespace, 'USAGE'),
    has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
    has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
    pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
    EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid),
    current_user,
    ARRAY(SELECT r.rulename FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = c.oid ORDER BY 1)
FROM pg_catalog.pg_class AS c WHERE c.oid = CAST($oid AS oid)
"""

_BELOW = """
SELECT CAST($oid AS oid) AS oid
UNION SELECT CAST(relid AS oid) FROM pg_partition_tree(CAST($oid AS oid))
"""
"""A table and its partitions, of every level."""

_REFERENCES = f"""
WITH below AS ({_BELOW})
SELECT DISTINCT n.nspname || '.' || c.relname, r.confdeltype
FROM pg_catalog.pg_constraint AS r
JOIN pg_catalog.pg_class AS c ON c.oid = r.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE r.contype = 'f' AND r.confrelid IN (SELECT oid FROM below) AND NOT EXISTS (
    SELECT 1 FROM pg_catalog.pg_constraint AS whole
    WHERE whole.oid = r.conparentid AND whole.confrelid IN (SELECT oid FROM below)
)
ORDER BY 1
"""

_READERS = f"""
WITH RECURSIVE read AS (
    SELECT CAST($oid AS oid) AS oid
    UNION
    SELECT i.inhparent FROM read JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = read.oid
), reading AS (
    (SELECT oid FROM read UNION {_BELOW})
    UNION
    SELECT w.ev_class
    FROM reading
    JOIN pg_catalog.pg_depend AS d
        ON d.refobjid = reading.oid AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_catalog.pg_rewrite AS w ON w.oid = d.objid
)
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM reading
JOIN pg_catalog.pg_class AS c ON c.oid = reading.oid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'm'
ORDER BY 1
"""


def _rights(facts: Sequence[Any], schema: str, table: str) -> Iterator[str]:
    """Yield what keeps this role from writing what a run writes."""
    usage, *granted = facts[3:8]
    in_recovery, is_read_only, role = facts[8], facts[9], facts[11]
    if in_recovery:
        yield "the server is a standby, which cannot be written to"
    elif is_read_only:
        yield f"default_transaction_read_only is on for the role {role}"
    if not usage:
        yield f"the role {role} may not use the schema {schema}, which has a table {table}"
    missing = [word for word, has in zip(("SELECT", "INSERT", "UPDATE", "DELETE"), granted, strict=True) if not has]
    if missing:
        yield f"the role {role} lacks {', '.join(missing)} on {schema}.{table}"


def _rights_next(facts: Sequence[Any]) -> str:
    """Return what helps where a role may not write the table."""
    if facts[8]:
        return "connect to the primary server"
    if facts[9]:
        return "set default_transaction_read_only to off for the role, or run as another one"
    return next_rights(facts[11])


def _hindrances(
    session: Session, name: str, facts: Sequence[Any], references: Sequence[tuple[str, str]]
) -> Iterator[Hindrance]:
    """Yield what keeps rows from being replaced, whatever the contract's columns are."""
    relkind, _, is_hiding, *_, has_children, role, rules = facts
    if is_hiding:
        found = f"row policies of {name} hide rows from the role {role}; what is hidden cannot be compared or replaced"
        yield Hindrance("target_policies", found, "run as a role with BYPASSRLS, or as the owner")
    if has_children and relkind == "r":
        found = f"other tables inherit from {name}: their rows are read with it, and new rows would not go to them"
        yield Hindrance("target_not_table", found, "name the table that holds the rows")
    rows = frozenset({Method.MERGE, Method.APPEND_VERSION})
    if relkind == "p":
        found = f"{name} is partitioned, and merge and append_version tell rows apart by their place in one table"
        yield Hindrance("method_unsupported", found, "method: replace_slice", rows)
    if rules:
        found = f"rules of {name} rewrite statements: {', '.join(rules)}"
        yield Hindrance("target_not_table", found, "replace them by triggers, or drop them")
    words = {"c": "removed", "n": "set to NULL", "d": "set to their defaults"}
    for other, action in references:
        if action in words:
            found = f"rows of {other} would be {words[action]} with a row that is removed from {name}"
            yield Hindrance("target_referenced", found, f"drop ON DELETE from the foreign key of {other}", rows)


def _remarks(session: Session, of: dict[str, Any]) -> Iterator[str]:
    """Yield what a person should know of before rows are replaced."""
    triggers = session.execute(
        f"SELECT DISTINCT tgname FROM pg_catalog.pg_trigger WHERE tgrelid IN ({_BELOW}) AND NOT tgisinternal"
        " AND tgenabled <> 'D' ORDER BY 1",
        of,
    )
    if triggers:
        named = ", ".join(row[0] for row in triggers)
        yield f"triggers of the target fire for the rows that are replaced: {named}"


def _keys(session: Session, of: dict[str, Any]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Return the column sets that the database keeps unique, the primary key first, and every column of an index."""
    rows = session.execute(
        "SELECT i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid, i.indnkeyatts,"
        " ARRAY(SELECT a.attname FROM unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS k(number, place)"
        " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)"
        " FROM pg_catalog.pg_index AS i WHERE i.indrelid = CAST($oid AS oid)"
        " ORDER BY i.indisprimary DESC, i.indexrelid",
        of,
    )
    keys = [frozenset(names[:count]) for is_unique, count, names in rows if is_unique]
    return tuple(dict.fromkeys(keys)), frozenset(name for _, _, names in rows for name in names)


def _missing(session: Session, contract: Contract) -> Refused:
    rows = session.execute(
        "SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema'"
        " AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> $ledger ORDER BY 1",
        {"ledger": contract.ledger.schema},
    )
    near = near_table(contract.table, [row[0].removeprefix("public.") for row in rows])
    database = session.execute("SELECT current_database()")[0][0]
    found = f"the database {database} has no table {contract.table}" + (f"; did you mean {near}?" if near else "")
    asked = contract.quote("table", f"table: {contract.table}")
    failure = Failure("target_missing", asked, (found,), "create the table, or correct the contract")
    return Refused(contract.name, [failure], unchanged="nothing was written")
