"""The tables of the ledger, what each column means, and the statements that make them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from reslice.engines.sql import kept_columns, quote
from reslice.ledger.texts import dump
from reslice.tables import Fill, Target


@dataclass(frozen=True, slots=True)
class LedgerColumn:
    """One column of a ledger table: its type in SQL, and what it means."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """One table of the ledger."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[LedgerColumn, ...]


def _columns(text: str) -> tuple[LedgerColumn, ...]:
    """Read a table's columns, one per line: name, type, meaning."""
    types = {"text": "VARCHAR", "integer": "BIGINT", "instant": "TIMESTAMP WITH TIME ZONE"}
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    return tuple(LedgerColumn(name, types[kind], meaning) for name, kind, meaning in rows)


RUNS = LedgerTable(
    "runs",
    "one row per run, from the moment it is asked for; never pruned",
    ("id",),
    _columns("""
        id                  text     the run's name, such as r-0042
        number              integer  counts up with every run
        target              text     the target's name in the contract
        table_name          text     the table, with catalog and schema
        kind                text     run, verify, restore or prune
        state               text     requested, published, unchanged, stopped, refused, failed or restored
        method              text     how a publish replaces slices
        contract_digest     text     changes when the contract or its SQL changes
        range_text          text     the ranges covered, as they are typed
        range_first         text     the first value of the first slice, local to the contract's zone
        range_last          text     the last value of the last slice, local to the contract's zone
        unit                text     the unit of the slices
        slices              integer  how many slices the ranges cover
        actor               text     who ran it: user and host
        process             text     the connection that runs it; a requested run whose process is gone is abandoned
        reason              text     the reason given for a consent
        consents            text     JSON: the guards that were allowed, and for which slices
        approves            text     the run or plan file whose exact diff was approved
        restores            text     the run whose replaced rows were put back
        requested_at        instant  when it was asked for, before anything was read
        finished_at         instant  when its state became final
        staged_order        integer  counts up with every snapshot that a run staged from
        publish_order       integer  counts up with every commit to the table
        lock_milliseconds   integer  how long the publish held the table
        rows_before         integer  rows of the ranges in the base
        rows_staged         integer  rows of the ranges in the staged rows
        rows_after          integer  rows of the ranges after the run
        totals              text     JSON: the sum of each measure before and after
        groups_added        integer  groups that were not there before
        groups_changed      integer  groups whose measures changed
        groups_removed      integer  groups that are no longer there
        groups_unchanged    integer  groups that stayed as they were
        groups_left_out     integer  moved groups that run_groups does not list
        fingerprint_base    text     fingerprint of the base, rows:sum
        fingerprint_staged  text     fingerprint of the staged rows
        fingerprint_after   text     fingerprint read back from the target
        fingerprint_columns text     JSON: the columns the fingerprints cover, in order
        checks              text     JSON: every check and guard, whether it held, and what was found
        controls            text     JSON: each figure of the source and of the rows
        warnings            text     JSON: what was said beside the result
        affected            text     JSON: slices outside the ranges that corrections touch and that were left
        error               text     JSON: kind, asked, found, unchanged and next, when it did not go through
        sql                 text     JSON: the statements that recomputed and replaced the slices, in order
        kept_table          text     the table that keeps the rows it replaced
        pruned_at           instant  when its kept rows and groups were let go of, older than keep_days
        tool_version        text     the version of reslice
        engine_version      text     the database and its version
    """),
)

RUN_SLICES = LedgerTable(
    "run_slices",
    "one row per slice of a run; slices of very long ranges are listed when they hold rows",
    ("run_id", "slice"),
    _columns("""
        run_id             text     the run
        slice              text     the slice, as it is typed in a range
        state              text     published, unchanged, empty, or open: seen, and not written
        fingerprint_base   text     fingerprint of the slice in the base
        fingerprint_staged text     fingerprint of the slice in the staged rows
        fingerprint_after  text     fingerprint read back after it was written
        groups_added       integer  groups that were not there before
        groups_changed     integer  groups whose measures changed
        groups_removed     integer  groups that are no longer there
        groups_unchanged   integer  groups that stayed as they were
        published_at       instant  when it was committed
    """),
)

RUN_GROUPS = LedgerTable(
    "run_groups",
    "the groups that moved; beyond a cap those that moved most, and runs.groups_left_out says how many more there were",
    ("run_id", "position"),
    _columns("""
        run_id      text     the run
        position    integer  place in the diff, from 1
        change      text     added, changed or removed
        slice       text     the slice the group lies in
        key         text     JSON: the grain columns
        before      text     JSON: the measures before; NULL when the group is new
        after       text     JSON: the measures after; NULL when the group is gone
        rows_before integer  how many rows the group had; more than one is a repeated key that was healed
    """),
)

FENCES = LedgerTable(
    "fences",
    "one row per table; a publish updates it first, so that two publishes of one table cannot overlap",
    ("table_name",),
    _columns("""
        table_name text     the table, with catalog and schema
        generation integer  counts up with every publish, and every block under writer_lock
    """),
)

POINTERS = LedgerTable(
    "pointers",
    "append_version: which version of a slice is the current one, which the view TABLE_current reads",
    ("table_name", "slice"),
    _columns("""
        table_name text the table, with its schema
        slice      text the first moment of the slice, as the database writes it
        version    text the run that wrote the version; empty for rows that no version wrote
    """),
)

VERSIONS = LedgerTable(
    "versions",
    "append_version: each time a run moved the pointer of a slice, and from where; also a run by another method does",
    ("run_id", "slice"),
    _columns("""
        run_id         text the run that moved it: one that wrote a version, or a restore
        table_name     text the table, with its schema
        slice          text the first moment of the slice, as the database writes it
        version        text the version that is current since then; empty for rows that no version wrote
        version_before text the version that was current until then; empty for rows that no version wrote
    """),
)

PRUNINGS = LedgerTable(
    "prunings",
    "one row per table: when its runs were last looked through for what is older than keep_days, once a day",
    ("table_name",),
    _columns("""
        table_name text     the table, with catalog and schema
        looked_at  instant  when the last look was
    """),
)

TABLES = (RUNS, RUN_SLICES, RUN_GROUPS, FENCES, PRUNINGS, POINTERS, VERSIONS)


def place(catalog: str, schema: str) -> str:
    """Return the qualified, quoted name of a ledger's schema."""
    return f"{quote(catalog)}.{quote(schema)}"


def foreign_tables(present: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the tables of a ledger's schema that bear a name of ours and are not ours: most of our columns lack."""
    foreign = []
    for table in TABLES:
        columns = {column for name, column in present if name == table.name}
        ours = {column.name for column in table.columns}
        if columns and len(columns & ours) * 2 < len(ours):
            foreign.append(table.name)
    return tuple(foreign)


def fence_statement(where: str) -> str:
    """Return the statement that takes the turn of the table `table_name`: it comes first, and touches exactly one row.

    It gives the new generation. Whoever has executed it and not yet ended is in front of every other.
    """
    return f"UPDATE {where}.fences SET generation = generation + 1 WHERE table_name = $table_name RETURNING generation"


def create_statements(where: str, present: Collection[tuple[str, str]], new_schema: str | None = "") -> list[str]:
    """Return the statements that make the ledger in the schema `where`, or bring an older one up to date.

    `new_schema` is its name where the schema itself is made, if that is another one, and None where it is there.
    `present` are the tables and columns that are there. Columns are only ever added, so older rows stay readable.
    """
    tables = {table for table, _ in present}
    is_there = bool(tables) or new_schema is None
    statements = [] if is_there else [f"CREATE SCHEMA IF NOT EXISTS {new_schema or where}"]
    for table in TABLES:
        name = f"{where}.{quote(table.name)}"
        columns = [f"{quote(column.name)} {column.type}" for column in table.columns]
        if table.name not in tables:
            key = ", ".join(quote(name) for name in table.key)
            statements.append(f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key}))")
            continue
        missing = [column for column in table.columns if (table.name, column.name) not in present]
        statements += [f"ALTER TABLE {name} ADD COLUMN {quote(column.name)} {column.type}" for column in missing]
    return statements


KEPT_RUN = "reslice:run"
"""The column of a kept table that names the run which replaced the row."""


def kept_table(where: str, target: Target) -> str:
    """Return the qualified table that keeps replaced rows of `target`; another set of columns has another table."""
    columns = [[column.name, column.type] for column in target.columns if column.fill is not Fill.GENERATED]
    digest = hashlib.sha256(dump([target.resolved, columns]).encode()).hexdigest()[:12]
    return f"{where}.{quote(f'kept_{digest}')}"


def create_kept(kept: str, live: str, target: Target) -> str:
    """Return the statement that makes the kept table, with the live table's types and none of its constraints."""
    columns = ", ".join(quote(name) for name in kept_columns(target))
    return (
        f"CREATE TABLE IF NOT EXISTS {kept} AS"
        f" SELECT CAST(NULL AS VARCHAR) AS {quote(KEPT_RUN)}, {columns} FROM {live} LIMIT 0"
    )


def create_kept_of_types(kept: str, target: Target) -> str:
    """Return the statement that makes the same table of the types that are known, with no look at the live table.

    A database in which a look waits for whoever holds the table makes it so, and its ledger waits for nobody.
    """
    columns = ", ".join(f"{quote(name)} {target.column(name).type}" for name in kept_columns(target))
    return f"CREATE TABLE IF NOT EXISTS {kept} ({quote(KEPT_RUN)} VARCHAR, {columns})"
