"""Names: quoted, reserved, mixed-case, spaced, non-ASCII and hostile ones work, and no second statement ever runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from reslice.engines.writers import fence_of
from reslice.errors import Misused, Refused
from tests.conformance.databases import Database, DuckDBDatabase, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, T0, Orders, Target, changed, found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Named(Target):
    """The base data in a target whose table and columns have other names."""

    def __init__(
        self,
        orders: Orders,
        table: str,
        columns: tuple[str, str, str, str],
        *,
        stamp: str = "",
        method: str = "replace_slice",
    ) -> None:
        day, channel, count, cents = columns
        q_day, q_channel, q_count, q_cents = map(quoted, columns)
        extra = f", {quoted(stamp)} varchar" if stamp else ""
        orders.database.execute(
            f"CREATE TABLE {table} ({q_day} date, {q_channel} varchar, {q_count} bigint, {q_cents} bigint{extra})"
        )
        declaration: dict[str, Any] = {
            "table": table,
            "source": "named.sql",
            "grain": [day, channel],
            "slice": {"column": day, "unit": "day"},
            "measures": {count: {"min": 1}, cents: {}},
            "guards": ALLOWED,
            "controls": {"source": "control.sql", "match": {"n": f"sum({count})"}} if count == count.strip() else None,
        }
        if stamp:
            declaration["stamps"] = {stamp: "run_id"}
        (orders.folder / "named.sql").write_text(
            f"SELECT order_date AS {q_day}, channel AS {q_channel}, count(*) AS {q_count},"
            f" sum(amount_cents) AS {q_cents} FROM orders_fact"
            " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel",
            encoding="utf-8",
        )
        (orders.folder / "control.sql").write_text(
            f"SELECT order_date AS {q_day}, count(*) AS n FROM orders_fact"
            " WHERE order_date BETWEEN :start AND :end GROUP BY order_date",
            encoding="utf-8",
        )
        self.orders = orders
        super().__init__(orders.database, "named", declaration, "SELECT :start, :end", method=method)

    @property
    def current(self) -> str:
        """What a reader reads, which bears a name in quotes where the table does."""
        view = self.table[:-1] + '_current"' if self.table.endswith('"') else f"{self.table}_current"
        try:
            self.database.rows(f"SELECT 1 FROM {view} LIMIT 0")
        except (duckdb.CatalogException, psycopg.errors.UndefinedTable):
            return self.table
        return view


def test_two_tables_whose_names_read_alike_are_two_tables(orders: Orders) -> None:
    database = orders.database
    for schema in ('"a.b"', "a"):
        database.execute(f"CREATE SCHEMA {schema}")
    first, second = (Named(orders, table, PLAIN) for table in ('"a.b".c', 'a."b.c"'))
    first.declare()
    run = first.run(f"{D1}..{D3}")
    orders.correct(4, 1300)
    second.declare()
    other = second.run(D2)
    assert other.table != run.table
    fences = database.rows("SELECT table_name FROM reslice.fences ORDER BY table_name")
    assert [name.partition(".")[2] for (name,) in fences] == ['"a.b".c', 'a."b.c"']
    first.declare()
    with pytest.raises(Refused):
        first.restore(other.id)
    assert first.rows() == list(T0) and len(second.rows()) == 2
    first.restore(run.id)
    assert first.rows() == [] and len(second.rows()) == 2
    assert fence_of("c", "reslice", ("w", "a.b", "c", "table")).table == 'w."a.b".c'
    assert fence_of("c", "reslice", ("w", "a", 'b."c', "table")).table == 'w.a."b.""c"'
    assert fence_of("c", "reslice", ("w", "main", "Daily Orders", "table")).table == "w.main.Daily Orders"
    assert database.rows("SELECT table_name FROM reslice.fences ORDER BY table_name") == fences


PLAIN = ("order_date", "channel", "order_count", "amount_cents")


def corrected_twice(orders: Orders, target: Named) -> str | None:
    """Fill, run again, correct and run again; return the run that published the correction."""
    target.publish(f"{D1}..{D3}", added=6, after=T0)
    orders.correct(4, 1300)
    run = target.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))
    assert run.diff is not None
    (group,) = run.diff.groups
    day, channel = target.declaration["grain"]
    count, cents = target.declaration["measures"]
    assert dict(group.key) == {day: D2, channel: "web"}
    assert (dict(group.before or {}), dict(group.after or {})) == ({count: 1, cents: 1200}, {count: 1, cents: 1300})
    assert target.groups(run.id) == [("changed", (D2, "web"), (1, 1200), (1, 1300))]
    answer = target.verify(f"{D1}..{D3}")
    assert answer.repeatable and answer.equals_source
    return run.id


def test_t23_1_reserved_mixed_case_and_spaced_names(orders: Orders) -> None:
    target = Named(orders, '"Daily Orders"', ("Date", "Channel", "select", "Amount in cents"))
    corrected_twice(orders, target)


NAMES = (
    'a"b; DROP TABLE orders_fact; --',
    '"; DELETE FROM daily_orders; --',
    "x'; DROP TABLE orders_fact; --",
    ":start",
    "$run_id",
    "?",
    "a.b",
    "{0}",
    "%s",
    "a\\b|c",
    "größe_日本_🧾",
    "n" * 200,
    "slice",
    "change",
    "row_count",
    "rows_before",
    "base_rows",
    "before",
    "key",
    "value",
    "query",
    "order",
    " leading and trailing ",
)


@pytest.mark.parametrize("first", range(len(NAMES)), ids=lambda place: NAMES[place][:20])
def test_t23_2_columns_of_any_name_work_quoted(orders: Orders, first: int) -> None:
    """Four names in a row, so that each one is slice column, key, first and second measure once."""
    names = (NAMES[(first + place) % len(NAMES)] for place in range(4))
    day, channel, count, cents = (name[: orders.database.longest_name] for name in names)
    target = Named(orders, "odd_columns", (day, channel, count, cents))

    corrected_twice(orders, target)

    assert orders.rows() == list(T0)
    assert orders.database.rows("SELECT count(*) FROM orders_fact") == [(8,)]


@pytest.mark.parametrize(
    "table",
    [
        '"a""b; DROP TABLE orders_fact; --"',
        '"it\'s"',
        '"größe 日本 🧾"',
        '"select"',
        '"a.b"',
        '"LONG"',
        '"%s {0} :start $1"',
        'SCHEMA."daily orders"',
        '"CATALOG".SCHEMA."daily orders"',
        pytest.param("MAIN.Mixed_Case", marks=only("duckdb", "its usual schema is called main")),
        pytest.param("PUBLIC.Mixed_Case", marks=only("postgresql", "its usual schema is called public")),
    ],
)
def test_t23_2_a_table_of_any_name_works_quoted(orders: Orders, table: str) -> None:
    words = {"SCHEMA": orders.database.schema, "CATALOG": orders.database.catalog}
    for word, meant in {**words, "LONG": "n" * orders.database.longest_name}.items():
        table = table.replace(word, meant)
    target = Named(orders, table, PLAIN)

    corrected_twice(orders, target)

    assert orders.rows() == list(T0)
    assert orders.database.rows("SELECT count(*) FROM orders_fact") == [(8,)]


@pytest.mark.parametrize("schema", ['"a""b; DROP TABLE orders_fact; --"', '"größe 日本"', '"select"', "Marts"])
def test_a_table_of_a_schema_of_any_name(orders: Orders, schema: str) -> None:
    orders.database.execute(f"CREATE SCHEMA {schema}")
    target = Named(orders, f"{schema}.daily_orders", PLAIN, stamp='batch "id"')
    target.run(f"{D1}..{D3}")

    assert orders.rows() == list(T0), "the table of the same name in another schema is another one"
    assert orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM {schema}.daily_orders") == [(6, 12149)]
    target.unchanged(f"{D1}..{D3}")


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["slice", "key", "measure", "last measure"])
def test_a_column_that_is_named_as_ours_are_is_a_mistake_of_the_contract(orders: Orders, place: int) -> None:
    columns = list(PLAIN)
    columns[place] = "Reslice:Hash"
    target = Named(orders, "odd_columns", (columns[0], columns[1], columns[2], columns[3]))
    error = target.fails("run", Misused, D1)
    assert error.exit_code == 2 and "names that begin with reslice: are taken" in found(error)


def test_one_table_under_two_spellings_has_one_fence(orders: Orders) -> None:
    orders.run(f"{D1}..{D3}")
    orders.declare(table=f"{orders.database.schema.upper()}.Daily_Orders")
    orders.run(f"{D1}..{D3}")
    fences = orders.database.rows("SELECT table_name FROM reslice.fences")
    assert fences == [(orders.database.full_name("daily_orders"),)]


@pytest.mark.parametrize("schema", ['books "of" runs; --', "größe", "ledger"])
def test_a_ledger_schema_of_any_name(orders: Orders, schema: str) -> None:
    orders.declare(ledger={"schema": schema})
    orders.correct(4, 1300)
    run = orders.run(f"{D1}..{D3}")
    assert orders.database.rows(f"SELECT id, state FROM {quoted(schema)}.runs") == [(run.id, "published")]
    assert orders.handle.project.show("last").id == run.id
    assert orders.database.table_names("reslice") == []


def in_a_folder_of_its_own(engine: Database, folder: Path) -> Database:
    """Return a database whose file lies in the folder; where databases are no files, the one that is there."""
    return DuckDBDatabase(folder, "entrepôt 2024.duckdb") if isinstance(engine, DuckDBDatabase) else engine


def test_t23_5_paths_with_spaces_and_other_letters(engine: Database, tmp_path: Path) -> None:
    folder = tmp_path / "mes données" / "büro 日本"
    folder.mkdir(parents=True)
    database = in_a_folder_of_its_own(engine, folder)
    orders = Orders(database, filled=False, folder=folder)
    orders.file = folder / "reslice café.yml"
    (folder / "requête un.sql").write_text((folder / "source.sql").read_text())
    orders.declare(source="requête un.sql")
    database.execute('CREATE SCHEMA "mes tables é"')
    orders.make_target(table='"mes tables é".daily_orders')
    orders.declare(table='"mes tables é".daily_orders')
    database.let_go()

    for _ in range(2):
        orders.run(f"{D1}..{D3}")
        database.let_go()
    assert database.rows('SELECT * FROM "mes tables é".daily_orders ORDER BY 1, 2') == list(T0)
    assert database.rows("SELECT state FROM reslice.runs ORDER BY number") == [("published",), ("unchanged",)]
    database.let_go()
