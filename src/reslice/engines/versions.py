"""append_version: every version of a slice stays in the table, and a pointer says which one is current.

A version is the rows of a slice that bear the id, in the stamp `run_id`, of a run that wrote this slice. Rows that no
version wrote, such as those that were there first, are the version with the empty name. What is said of a slice goes by
its first moment, as the database writes it. Readers use the view `TABLE_current`, and so does everything else here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from reslice.contract import Contract, Method, StampValue
from reslice.engines import sql
from reslice.engines.dialect import Dialect
from reslice.engines.sql import Names, quote, text_literal
from reslice.ranges import Scope
from reslice.tables import Target
from reslice.values import Staged

VIEW_SUFFIX = "_current"
OURS = "reslice"
"""The first word of the comment by which a view of ours is known."""


def table_key(target: Target) -> str:
    """Return the name under which the ledger has the versions of a table, and under which the view asks for them.

    It is without the catalog, which is the name of the database, and in DuckDB that of the file, or whatever a reader
    has attached it as. Names that hold a dot are quoted: `"a.b".c` and `a."b.c"` are two tables.
    """
    names = (target.schema, target.table)
    return sql.dotted(*names) if any(mark in name for name in names for mark in '."') else ".".join(names)


def view_name(target: Target) -> str:
    """Return the name of the view of the current versions; it stands beside the table.

    Where it would be cut it ends in a digest of the table's name: two long names may differ in their last letter.
    """
    name, most = f"{target.table}{VIEW_SUFFIX}", target.name_bytes_max
    if most is None or len(name.encode()) <= most:
        return name
    suffix = f"_{hashlib.md5(target.table.encode()).hexdigest()[:8]}{VIEW_SUFFIX}"
    return target.table.encode()[: most - len(suffix)].decode(errors="ignore") + suffix


def stamp_column(contract: Contract) -> str:
    """Return the column that names the version of a row."""
    return next(stamp.column for stamp in contract.stamps if stamp.value is StampValue.RUN_ID)


def slice_key(dialect: Dialect, contract: Contract, target: Target, expression: str) -> str:
    """Return the first moment of a value's slice, as text."""
    column = sql.slice_column(contract, target)
    return dialect.slice_key(dialect.slice_start(expression, column, contract.slice), column)


def current_pointers(where: str, target: Target) -> str:
    """Return the SELECT of the current version of each slice that has one: slice, version."""
    return f"SELECT slice, version FROM {where}.pointers WHERE table_name = {text_literal(table_key(target))}"


def pointers_before(where: str, run_id: str) -> str:
    """Return the SELECT of the versions that were current until a run moved the pointers: slice, version."""
    return f"SELECT slice, version_before AS version FROM {where}.versions WHERE run_id = {text_literal(run_id)}"


def rows_select(
    dialect: Dialect, contract: Contract, target: Target, where: str, pointers: str, *, row_id: str = ""
) -> str:
    """Return the SELECT of the rows of the versions that `pointers` names; of no version where it names none.

    With `row_id` their physical place comes first, under that name.
    """
    columns = ", ".join(f"t.{quote(column.name)}" for column in target.columns)
    columns = f"t.{dialect.row_id} AS {row_id}, {columns}" if row_id else columns
    key = slice_key(dialect, contract, target, f"t.{quote(contract.slice.column)}")
    stamp = f"t.{quote(stamp_column(contract))}"
    return (
        f"SELECT {columns}\nFROM {sql.target_name(target)} AS t\n"
        f"LEFT JOIN ({pointers}) AS p ON p.slice = {key}\n"
        f"LEFT JOIN ({_written(where, target)}) AS w ON w.id = {stamp} AND w.slice = {key}\n"
        f"WHERE CASE WHEN coalesce(p.version, '') = '' THEN w.id IS NULL ELSE {stamp} = p.version END"
    )


@dataclass(frozen=True, slots=True)
class View:
    """The view of the current versions, as it should be. `comment` tells how slices are cut, and the text's digest."""

    name: str
    select: str
    comment: str

    @property
    def cut(self) -> str:
        """The part of the comment that says how slices are cut; another cut makes the pointers mean nothing."""
        return cut_of(self.comment)

    @property
    def statements(self) -> tuple[str, str]:
        """The statements that make it."""
        return (
            f"CREATE OR REPLACE VIEW {self.name} AS\n{self.select}",
            f"COMMENT ON VIEW {self.name} IS {text_literal(self.comment)}",
        )


def view(dialect: Dialect, contract: Contract, target: Target) -> View:
    """Return the view that a contract needs.

    It names no catalog, so that it is the same in a file or a database that is renamed or copied, and in a file that is
    attached under another name.
    """
    name = sql.dotted(target.catalog, target.schema, view_name(target))
    where = quote(contract.ledger.schema)
    pointers = current_pointers(where, target)
    select = rows_select(dialect, contract, replace(target, catalog=""), where, pointers)
    cut = f"{OURS}: the current versions of {target.table}, {contract.slice.unit} by {contract.slice.timezone}"
    return View(name, select, f"{cut}; {hashlib.sha256(select.encode()).hexdigest()[:12]}")


def cut_of(comment: str) -> str:
    """Return the part of a view's comment that says how slices are cut."""
    return comment.partition(";")[0]


def move_statements(dialect: Dialect, staged: Staged, names: Names, where: str, written: Scope) -> tuple[str, str]:
    """Return the statements that point each written slice at its new version, and note where it pointed before.

    A run by append_version names its own rows, and one by another method the version of no run, since it has put its
    rows in the place of all versions. A restore names what the run it undoes had found. All take the parameter
    `run_id`.
    """
    contract, target = staged.contract, staged.target
    table, keys = text_literal(table_key(target)), _written_slices(dialect, staged, names, written)
    version, undone = "$run_id" if contract.method is Method.APPEND_VERSION else "''", ""
    if staged.restores:
        version = "coalesce(u.version, '')"
        undone = f"\nLEFT JOIN ({pointers_before(where, staged.restores)}) AS u ON u.slice = k.slice"
    return (
        f"INSERT INTO {where}.versions (run_id, table_name, slice, version, version_before)\n"
        f"SELECT $run_id, {table}, k.slice, {version}, coalesce(p.version, '')\n"
        f"FROM ({keys}) AS k\n"
        f"LEFT JOIN ({current_pointers(where, target)}) AS p ON p.slice = k.slice{undone}",
        f"INSERT INTO {where}.pointers (table_name, slice, version)\n"
        f"SELECT table_name, slice, version FROM {where}.versions WHERE run_id = $run_id\n"
        "ON CONFLICT (table_name, slice) DO UPDATE SET version = excluded.version",
    )


def points_condition(dialect: Dialect, staged: Staged, names: Names, where: str, written: Scope) -> str:
    """Return the condition that a written slice has a version, or had one that a restore is to point at again."""
    target = staged.target
    keys = _written_slices(dialect, staged, names, written)
    has = f"EXISTS ({current_pointers(where, target)} AND version <> '' AND slice IN ({keys}))"
    return f"{has} OR EXISTS ({pointers_before(where, staged.restores)})" if staged.restores else has


def _written_slices(dialect: Dialect, staged: Staged, names: Names, written: Scope) -> str:
    """Return the SELECT of the first moments, as text, of the slices that are written."""
    column = sql.slice_column(staged.contract, staged.target)
    inside = sql.within(dialect, "slice", column, staged.contract.slice, written)
    return f"SELECT {dialect.slice_text('slice', column)} AS slice FROM {names.slices} WHERE {inside}"


def listed_select(dialect: Dialect, contract: Contract, target: Target, where: str, scope: Scope | None) -> str:
    """Return the SELECT of every version of every slice, and of current ones without rows.

    Columns: slice, version, rows, whether it is current, and since when it is not (NULL where it is, or never was).
    """
    table = text_literal(table_key(target))
    column = sql.slice_column(contract, target)
    key = slice_key(dialect, contract, target, f"t.{quote(column.name)}")
    inside = sql.within(dialect, f"t.{quote(column.name)}", column, contract.slice, scope) if scope else "true"
    held = (
        f"SELECT {key} AS slice, coalesce(w.id, '') AS version, count(*) AS row_count\n"
        f"FROM {sql.target_name(target)} AS t LEFT JOIN ({_written(where, target)}) AS w"
        f" ON w.id = t.{quote(stamp_column(contract))} AND w.slice = {key}\n"
        f"WHERE {inside} AND t.{quote(column.name)} IS NOT NULL GROUP BY 1, 2"
    )
    replaced = (
        "SELECT v.slice, v.version_before AS version, max(r.finished_at) AS replaced_at"
        f" FROM {where}.versions AS v JOIN {where}.runs AS r ON r.id = v.run_id"
        f" WHERE v.table_name = {table} GROUP BY 1, 2"
    )
    return (
        "SELECT coalesce(h.slice, p.slice) AS slice, coalesce(h.version, p.version) AS version,\n"
        "  coalesce(h.row_count, 0) AS row_count,\n"
        "  coalesce(h.version = coalesce(c.version, ''), true) AS is_current, s.replaced_at\n"
        f"FROM ({held}) AS h\n"
        f"FULL JOIN ({current_pointers(where, target)}) AS p ON p.slice = h.slice AND p.version = h.version\n"
        f"LEFT JOIN ({current_pointers(where, target)}) AS c ON c.slice = h.slice\n"
        f"LEFT JOIN ({replaced}) AS s ON s.slice = h.slice AND s.version = h.version"
    )


def prune_statement(dialect: Dialect, contract: Contract, target: Target, where: str, scope: Scope | None) -> str:
    """Return the DELETE of the versions that are not current and were replaced before the instant `before`."""
    name, column = sql.target_name(target), sql.slice_column(contract, target)
    key = slice_key(dialect, contract, target, f"t.{quote(column.name)}")
    old = (
        f"SELECT slice, version FROM ({listed_select(dialect, contract, target, where, scope)}) AS listed"
        " WHERE NOT is_current AND version <> '' AND replaced_at < CAST($before AS TIMESTAMP WITH TIME ZONE)"
    )
    return (
        f"DELETE FROM {name} WHERE {dialect.row_id} IN (SELECT t.{dialect.row_id} FROM {name} AS t"
        f" LEFT JOIN ({_written(where, target)}) AS w ON w.id = t.{quote(stamp_column(contract))} AND w.slice = {key}"
        f" JOIN ({old}) AS o ON o.slice = {key} AND o.version = coalesce(w.id, ''))"
    )


RUN_IDS = "r-[0-9]{4,}"
"""What the id of a run looks like, in whichever ledger it stands."""


def any_select(where: str, target: Target) -> str:
    """Return the SELECT of whether the ledger knows of any version of the table."""
    return f"SELECT 1 FROM {where}.versions WHERE table_name = {text_literal(table_key(target))} LIMIT 1"


def several_select(dialect: Dialect, contract: Contract, target: Target) -> str:
    """Return the SELECT of one key that has rows of several versions, where the ledger knows of none: key, versions."""
    stamp = f"coalesce({quote(stamp_column(contract))}, 'no run')"
    keys = [column.name for column in contract.grain]
    shown = (dialect.shown(quote(key), target.column(key), None) for key in keys)
    texts = (f"coalesce(CAST({text} AS VARCHAR), 'NULL')" for text in shown)
    plain = ", ".join(dialect.plain(quote(key), target.column(key)) for key in keys)
    return (
        f"SELECT any_value(concat_ws(', ', {', '.join(texts)})), string_agg(DISTINCT {stamp}, ', ' ORDER BY {stamp})\n"
        f"FROM {sql.target_name(target)} GROUP BY {plain}\n"
        f"HAVING count(DISTINCT {stamp}) > 1 AND bool_or({dialect.matches(stamp, RUN_IDS)})\nORDER BY 1 LIMIT 1"
    )


def _written(where: str, target: Target) -> str:
    """Return the SELECT of the versions that runs wrote, by run and slice: those that the slice has once pointed at.

    A run's id in a row of another slice says nothing: somebody may have put it there, or a ledger that is gone.
    """
    return (
        f"SELECT run_id AS id, slice FROM {where}.versions"
        f" WHERE table_name = {text_literal(table_key(target))} AND version = run_id"
    )
