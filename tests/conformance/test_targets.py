"""What the target may be and what hangs on it: views, unknown columns, keys, checks, identities, stamps, rights."""

from __future__ import annotations

import os
import stat
from typing import Any

import duckdb
import pytest

import reslice
from reslice.errors import Refused, Retryable
from reslice.values import Outcome
from tests.conformance.databases import file_of, only
from tests.conformance.orders import D1, D2, D3, SOURCE, T0, Orders, changed, found, kinds

BASE = "order_date date, channel varchar, order_count bigint, amount_cents bigint"


@pytest.mark.parametrize("body", ["SELECT * FROM real_orders", "SELECT * FROM real_orders WHERE true"])
def test_t24_1_a_view_is_refused_when_it_is_planned(orders: Orders, body: str) -> None:
    orders.database.execute("ALTER TABLE daily_orders RENAME TO real_orders")
    orders.database.execute(f"CREATE VIEW daily_orders AS {body}")
    for command in ("plan", "run", "verify"):
        error = orders.fails(command, Refused, D2)
        assert kinds(error) == ["target_not_table"] and error.exit_code == 3
    assert orders.rows() == list(T0)


@pytest.mark.parametrize("table", ["daily_order", "no.such.table", "other.daily_orders", '"Daily Orders"'])
def test_a_table_that_is_not_there_is_refused(orders: Orders, table: str) -> None:
    orders.declare(table=table)
    for command in ("plan", "run"):
        error = orders.fails(command, Refused, D2)
        assert kinds(error) == ["target_missing"]
    assert orders.database.table_names("reslice") == [], "nothing is made for a table that is not there"


@only("postgresql", "DuckDB tells no names apart by their case")
def test_a_table_that_is_called_exactly_so_comes_before_the_one_in_lower_case(orders: Orders) -> None:
    orders.database.execute("ALTER TABLE daily_orders RENAME TO sales")
    orders.database.execute('CREATE TABLE "Sales" (LIKE sales)')
    orders.declare(table="Sales")
    assert orders.run(D2).table == orders.database.full_name("Sales")
    d2 = [row for row in T0 if row[0] == D2]
    assert sorted(orders.database.rows('SELECT * FROM "Sales"')) == d2
    assert sorted(orders.database.rows("SELECT * FROM sales")) == list(T0)
    orders.database.execute('DROP TABLE "Sales"')
    orders.correct(4, 1300)
    assert orders.run(D2).table == orders.database.full_name("sales")
    after = orders.database.rows("SELECT amount_cents FROM sales WHERE order_date = '2024-03-02' AND channel = 'web'")
    assert after == [(1300,)]


def test_a_column_that_nobody_fills_is_refused_by_name(orders: Orders) -> None:
    orders.database.execute("ALTER TABLE daily_orders ADD COLUMN note varchar DEFAULT 'seen'")
    assert f"note ({orders.database.type_name('varchar')})" in found(orders.refuses(D2, "target_column"))


def test_columns_that_the_target_lacks_are_refused_with_a_near_match(orders: Orders) -> None:
    orders.make_target("order_date date, chanel varchar, amount_cents bigint")
    error = orders.refuses(D2, "target_column", "target_column", "target_column")
    assert "no column channel; did you mean chanel?" in found(error) and "no column order_count" in found(error)


@only("duckdb", "a foreign key is checked at once, whatever the transaction holds")
def test_a_target_that_foreign_keys_point_at_is_refused(orders: Orders) -> None:
    orders.make_target(f"{BASE}, PRIMARY KEY (order_date, channel)")
    orders.fill()
    orders.database.execute(
        "CREATE TABLE notes (order_date date, channel varchar, note varchar,"
        " FOREIGN KEY (order_date, channel) REFERENCES daily_orders (order_date, channel))"
    )
    assert "main.notes" in found(orders.refuses(D2, "target_referenced"))


def test_a_target_with_a_foreign_key_of_its_own_is_replaced(orders: Orders) -> None:
    orders.database.execute("CREATE TABLE channels (channel varchar PRIMARY KEY)")
    orders.database.execute("INSERT INTO channels VALUES ('web'), ('store'), ('phone')")
    orders.make_target(f"{BASE}, FOREIGN KEY (channel) REFERENCES channels (channel)")
    orders.fill()
    orders.correct(4, 1300)
    orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))

    orders.order(9, D2, "kiosk", 5)
    error = orders.fails("run", Retryable, D2)
    assert kinds(error) == ["publish_failed"] and "foreign key" in found(error)
    assert orders.rows() == changed((D2, "web", 1, 1300))


VIRTUAL = pytest.param("virtual", marks=only("duckdb", "PostgreSQL 16 has stored ones alone"))


@pytest.mark.parametrize("kind", ["generated", VIRTUAL])
def test_a_generated_column_is_filled_by_the_database(orders: Orders, kind: str) -> None:
    average = orders.database.generated("CAST(amount_cents / order_count AS bigint)")
    orders.make_target(f"{BASE}, avg_cents bigint {average}" + (" VIRTUAL" if kind == "virtual" else ""))
    orders.publish(f"{D1}..{D3}", added=6, after=[(*row, row[3] // row[2]) for row in T0])
    assert orders.database.rows(
        f"SELECT avg_cents FROM daily_orders WHERE order_date = '{D1}' AND channel = 'web'"
    ) == [(1750,)]


def test_a_generated_column_that_the_contract_names_is_refused(orders: Orders) -> None:
    doubled = orders.database.generated("order_count * 2")
    orders.make_target(BASE.replace("amount_cents bigint", f"amount_cents bigint {doubled}"))
    assert "generated by the database" in found(orders.refuses(D2, "target_column"))


def test_an_identity_column_is_filled_by_the_database_and_is_no_change(orders: Orders) -> None:
    orders.database.execute("CREATE SEQUENCE row_ids")
    orders.make_target(f"row_id bigint DEFAULT nextval('row_ids'), {BASE}")
    orders.run(f"{D1}..{D3}")
    assert orders.database.rows("SELECT count(DISTINCT row_id), min(row_id) FROM daily_orders") == [(6, 1)]
    orders.unchanged(f"{D1}..{D3}")
    orders.correct(4, 1300)
    orders.run(f"{D1}..{D3}")
    assert orders.database.rows(
        "SELECT min(row_id), max(row_id) FROM daily_orders WHERE order_date = '2024-03-02'"
    ) == [(7, 8)]


def test_stamps_are_filled_by_the_run_and_are_no_change(orders: Orders) -> None:
    orders.make_target(f"{BASE}, loaded_at timestamptz, loaded_utc timestamp, batch_id varchar")
    orders.declare(stamps={"loaded_at": "run_time", "loaded_utc": "run_time", "batch_id": "run_id"})
    first = orders.run(f"{D1}..{D3}")
    stamps = (
        "SELECT DISTINCT order_date, batch_id, abs(extract(epoch FROM loaded_at) - extract(epoch FROM now())) < 60,"
        " timezone('UTC', loaded_at) = loaded_utc FROM daily_orders ORDER BY order_date"
    )
    assert orders.database.rows(stamps) == [(day, first.id, True, True) for day in (D1, D2, D3)]
    place = orders.database.place
    stays = f"SELECT {place} FROM daily_orders WHERE order_date <> '2024-03-03' ORDER BY 1"
    before = orders.database.rows(stays)

    orders.database.execute("UPDATE daily_orders SET batch_id = 'mine' WHERE order_date = '2024-03-03'")
    assert orders.run(f"{D1}..{D3}").outcome is Outcome.UNCHANGED
    assert orders.database.rows(stays) == before

    orders.correct(4, 1300)
    second = orders.run(f"{D1}..{D3}")
    assert orders.database.rows(stamps) == [
        (D1, first.id, True, True),
        (D2, second.id, True, True),
        (D3, "mine", True, True),
    ]


@pytest.mark.parametrize(
    ("columns", "stamps", "words"),
    [
        ("loaded_at date", {"loaded_at": "run_time"}, "loaded_at is date"),
        ("batch_id bigint", {"batch_id": "run_id"}, "batch_id is bigint"),
        ("other varchar", {"other": "run_id", "missing": "run_time"}, "no column missing"),
    ],
)
def test_a_stamp_of_the_wrong_type_is_refused(orders: Orders, columns: str, stamps: dict[str, str], words: str) -> None:
    orders.make_target(f"{BASE}, {columns}")
    orders.declare(stamps=stamps)
    error = orders.fails("run", Refused, D2)
    *before, named = words.split()
    assert " ".join([*before, orders.database.type_name(named) if before[-1] == "is" else named]) in found(error)


@pytest.mark.parametrize(
    "type_text",
    [
        "integer[]",
        "interval",
        "bit",
        "json",
        "time with time zone",
        *(
            pytest.param(each, marks=only("duckdb", "its own type"))
            for each in ("struct(a integer)", "blob", "timestamp_ns")
        ),
        *(
            pytest.param(each, marks=only("postgresql", "its own type"))
            for each in ("bytea", "jsonb", "inet", "daterange")
        ),
    ],
)
@pytest.mark.parametrize("place", ["channel", "amount_cents"])
def test_a_column_whose_values_are_not_told_apart_exactly_is_refused(
    orders: Orders, type_text: str, place: str
) -> None:
    orders.make_target(
        BASE.replace(f"{place} varchar", f"{place} {type_text}").replace(f"{place} bigint", f"{place} {type_text}")
    )
    error = orders.fails("run", Refused, D2)
    assert "target_type" in kinds(error) and f"{place} is {type_text}".split("(")[0].lower() in found(error).lower()
    assert orders.ledger(error.run.id)["state"] == "refused"


def test_a_float_key_is_refused(orders: Orders) -> None:
    orders.make_target(BASE.replace("channel varchar", "channel double precision"))
    assert "target_type" in kinds(orders.fails("run", Refused, D2))


@only("duckdb", "rows are touched before they are replaced; PostgreSQL locks the table")
@pytest.mark.parametrize(
    ("check", "guards_updates"),
    [
        ("CHECK (order_count >= 1)", True),
        ("CHECK (order_count >= 1 AND amount_cents >= 0)", True),
        ("CHECK (order_count <= 2)", True),
        ("CHECK (order_count BETWEEN 1 AND 2), CHECK (amount_cents IN (700, 3500, 750, 1200, 1300, 999, 5000))", True),
        ("CHECK (order_count IS NOT NULL), CHECK (order_count BETWEEN 1 AND 2)", False),
    ],
    ids=["minimum", "two minimums", "maximum", "closed list", "closed and not null"],
)
def test_a_check_of_the_target_does_not_keep_it_from_being_replaced(
    orders: Orders, check: str, guards_updates: bool
) -> None:
    orders.make_target(f"{BASE}, {check}")
    orders.fill()
    orders.correct(4, 1300)

    run = orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))

    assert any("hid concurrent updates" in warning for warning in run.warnings) is not guards_updates


@pytest.mark.parametrize(
    "columns",
    [
        "order_date date NOT NULL, channel varchar NOT NULL, order_count bigint NOT NULL, amount_cents bigint NOT NULL",
        "order_date date NOT NULL, channel varchar NOT NULL, order_count bigint NOT NULL, amount_cents bigint NOT NULL,"
        " CHECK (order_count BETWEEN 1 AND 2), PRIMARY KEY (order_date, channel)",
    ],
)
def test_not_null_columns_are_replaced(orders: Orders, columns: str) -> None:
    orders.make_target(columns)
    orders.fill()
    orders.correct(4, 1300)
    orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))


def test_a_null_that_the_target_forbids_is_rolled_back(orders: Orders) -> None:
    orders.make_target(BASE.replace("amount_cents bigint", "amount_cents bigint NOT NULL"))
    orders.fill()
    orders.order(9, D2, "app", None)
    orders.declare(measures={"order_count": None, "amount_cents": {"nulls": "allow"}})
    before = orders.versions()
    error = orders.fails("run", Retryable, D2)
    assert kinds(error) == ["publish_failed"] and "not null" in found(error).lower().replace("-", " ")
    assert orders.versions() == before


def test_a_method_that_the_engine_cannot_do_is_refused_with_the_reason(orders: Orders) -> None:
    orders.declare(method="replace_partition")
    assert f"{orders.database.name}: " in found(orders.refuses(D2, "method_unsupported"))


@only("duckdb", "a database is a file")
def test_x03_a_database_that_may_not_be_written_is_refused_when_it_is_planned(orders: Orders) -> None:
    orders.correct(4, 1300)
    path = str(file_of(orders.database))
    orders.database.let_go()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS warehouse (READ_ONLY)")
        orders.declare(table="warehouse.main.daily_orders")
        orders.source(SOURCE.replace("FROM orders_fact", "FROM warehouse.orders_fact"))
        target = reslice.open(orders.file, connection=connection).target("daily_orders")
        for command in (target.plan, target.run):
            with pytest.raises(Refused) as caught:
                command(D2)
            assert kinds(caught.value) == ["target_rights"]
    assert orders.rows() == list(T0)


@only("duckdb", "a database is a file")
@pytest.mark.parametrize("command", ["plan", "run"])
def test_x03_a_file_that_this_user_may_not_write_is_refused_when_it_is_planned(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    orders.database.let_go()
    before = file_of(orders.database).read_bytes()
    may = os.access
    path = file_of(orders.database)
    file_of(orders.database).chmod(stat.S_IRUSR)
    # The superuser may write every file; what the mode of the file says is what another user is told.
    monkeypatch.setattr(os, "access", lambda place, mode: may(place, mode) and (place != path or mode != os.W_OK))

    error = orders.fails(command, Refused, D2)

    assert kinds(error) == ["target_rights"] and "may not write the database file" in found(error)
    assert file_of(orders.database).read_bytes() == before


@only("duckdb", "a database is a file")
def test_who_may_only_read_may_ask_how_the_target_stands(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.correct(4, 1300)
    orders.database.let_go()
    path, may = file_of(orders.database), os.access
    monkeypatch.setattr(os, "access", lambda place, mode: may(place, mode) and (place != path or mode != os.W_OK))

    assert orders.verify(f"{D1}..{D3}").equals_source is False
    status = orders.status(f"{D1}..{D3}")

    assert status.diff is not None and [each.label for each in status.diff.differing] == [D2]


@only("duckdb", "a database is a file")
def test_plan_and_verify_open_the_file_to_read_and_leave_every_byte(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.database.let_go()
    before = file_of(orders.database).read_bytes()
    orders.plan(f"{D1}..{D3}")
    orders.verify(f"{D1}..{D3}")
    assert file_of(orders.database).read_bytes() == before
    assert sorted(each.name for each in orders.folder.iterdir()) == [
        "daily_orders.yml",
        "source.sql",
        "warehouse.duckdb",
    ]


@only("duckdb", "a session can be given a small disk")
def test_x05_a_full_disk_while_staging_leaves_everything(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.database.execute("SET GLOBAL memory_limit = '24MB'")
    orders.database.execute("SET GLOBAL max_temp_directory_size = '0KB'")
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
        " UNION ALL SELECT DATE '2024-03-02', repeat('x', 1000) || n, 1, 1 FROM range(1000000) AS numbers (n)"
    )

    error: Any = orders.fails("run", Retryable, D2)

    assert kinds(error) == ["source_failed"] and error.exit_code == 4
    orders.database.execute("RESET GLOBAL memory_limit")
    assert orders.rows() == list(T0)
    assert orders.ledger(error.run.id)["state"] == "failed"
    assert not [name for name in orders.database.table_names() if name.startswith("reslice_")]
