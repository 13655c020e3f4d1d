"""What was tried against the promises: ledgers, macros, columns and corrections at the wrong moment."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

import reslice
from reslice import as_json
from reslice.errors import Misused, Refused, Stopped
from reslice.report_json import show_json
from reslice.report_ledger import show_text
from reslice.values import Outcome, State, Total
from tests.conformance.databases import Database, only
from tests.conformance.orders import Target, found, kinds
from tests.conformance.test_ten_cases import JAN1, JAN2, JAN3, SOURCE, Shop

WHOLE = f"{JAN1}..{JAN3}"


@pytest.fixture
def shop(engine: Database) -> Shop:
    return Shop(engine)


def money(engine: Database, measure: str, column: str) -> Target:
    """A target whose measure is money with a fraction: 10.50 on one day."""
    engine.execute("CREATE TABLE sales (day date, amount decimal(18,2))")
    engine.execute(f"CREATE TABLE revenue (day date, revenue {column})")
    engine.insert("sales", [(JAN1, Decimal("10.50"))])
    declaration = {
        "table": "revenue",
        "source": "source.sql",
        "grain": ["day"],
        "slice": {"column": "day", "unit": "day"},
        "measures": {"revenue": json.loads(measure)},
        "controls": {"source": "control.sql", "match": {"revenue": "sum(revenue)"}},
        "guards": {"total_change": "50%"},
    }
    target = Target(
        engine,
        "revenue",
        declaration,
        "SELECT day, sum(amount) AS revenue FROM sales WHERE day BETWEEN :start AND :end GROUP BY day",
    )
    target.source(
        "SELECT day, sum(amount) AS revenue FROM sales GROUP BY day HAVING day BETWEEN :start AND :end", "control"
    )
    return target


@pytest.mark.parametrize(
    ("measure", "column"), [("{}", "decimal(18,2)"), ('{"scale": 2}', "double precision"), ("{}", "decimal(38,8)")]
)
def test_decimals_come_back_from_the_ledger_as_decimals(engine: Database, measure: str, column: str) -> None:
    target = money(engine, measure, column)
    target.run(JAN1)
    engine.execute("UPDATE sales SET amount = 12345678901.25")
    stopped = target.fails("run", Stopped, JAN1)
    shown = target.handle.project.show(stopped.run.id)
    assert shown.totals == {"revenue": Total(Decimal("10.50"), Decimal("12345678901.25"))}
    assert shown.controls[0].control == Decimal("12345678901.25")
    assert "(+12345678890.75" in show_text(shown)
    (group,) = show_json(shown)["groups"]
    assert Decimal(group["before"]["revenue"]) == Decimal("10.50")
    assert Decimal(group["after"]["revenue"]) == Decimal("12345678901.25")


def test_groups_keep_every_digit_of_a_decimal(engine: Database) -> None:
    target = money(engine, "{}", "decimal(38,2)")
    engine.execute("ALTER TABLE sales ALTER amount TYPE decimal(38,2)")
    engine.execute("UPDATE sales SET amount = 123456789012345678901234567890.12")
    (group,) = as_json(target.run(JAN1))["groups"]
    assert group["after"] == {"revenue": "123456789012345678901234567890.12"}


def test_the_ledger_keeps_every_failure_and_what_was_consented_to(shop: Shop) -> None:
    shop.declare(guards={"total_change": "10%"})
    shop.database.execute(f"DELETE FROM orders_fact WHERE order_date = '{JAN2}'")
    stopped = shop.fails("run", Stopped, WHOLE)
    assert kinds(stopped) == ["empty_slice", "total_change"]
    recorded = shop.handle.project.show(stopped.run.id)
    assert recorded.error is not None
    assert [each["kind"] for each in recorded.error["failures"]] == ["empty_slice", "total_change"]
    assert [each.name for each in recorded.checks if each.stops] == ["empty_slice", "total_change"]
    done = shop.run(approve=stopped.run.id)
    after = shop.handle.project.show(done.id or "")
    assert [(each.name, each.stops) for each in after.checks if each.consented] == [
        ("empty_slice", False),
        ("total_change", False),
        ("removed_groups", False),
    ]


def test_a_run_at_work_is_told_as_running(shop: Shop) -> None:
    project, seen = shop.handle.project, []
    other = shop.database.project(shop.file)
    project.target("daily_orders").run(WHOLE, rewrite=True, on_step=lambda step: seen.append(other.show("last")))
    assert {(each.state, each.alive) for each in seen if each.state != State.PUBLISHED} == {("requested", True)}
    assert not other.show("last").alive


def test_a_correction_between_the_two_questions_of_a_run_is_named_by_the_next(shop: Shop, engine: Database) -> None:
    """Corrections are asked for since a run was requested; one that lands while it asks belongs to the next."""
    engine.execute("CREATE TABLE corrections (day date, noted_at timestamptz)")
    shop.source("SELECT day FROM corrections WHERE noted_at > :since", "affected")
    shop.declare(affected="affected.sql")
    assert shop.run(JAN1).affected == ()
    engine.execute(f"INSERT INTO corrections SELECT '{JAN3}', now()")
    staged: list[str] = []

    def meanwhile(step: str) -> None:
        if step == "staging" and not staged:
            staged.append(step)
            engine.execute(f"INSERT INTO corrections SELECT '{JAN2}', now()")

    assert shop.run(JAN1, on_step=meanwhile).affected == (JAN3,)
    assert shop.run(JAN1).affected == (JAN2, JAN3)


@pytest.mark.parametrize("value", ["infinity", "10000-01-01", "0044-03-15 BC", None])
def test_a_correction_of_no_calendar_day_touches_no_slice(shop: Shop, value: str | None) -> None:
    if value is not None and value.endswith(" BC"):
        value = shop.database.before_christ(value.removesuffix(" BC"))
    shop.source(
        f"SELECT CAST({'NULL' if value is None else repr(value)} AS date) AS day WHERE :since IS NOT NULL", "affected"
    )
    shop.declare(affected="affected.sql")
    assert shop.plan(JAN1).affected == ()


def test_a_correction_that_is_no_day_at_all_is_a_mistake(shop: Shop) -> None:
    shop.source("SELECT 'garbage' WHERE :since IS NOT NULL", "affected")
    shop.declare(affected="affected.sql")
    error = shop.fails("plan", Misused, JAN1)
    assert kinds(error) == ["source_invalid"] and "garbage" in found(error)


def test_one_table_has_one_ledger(shop: Shop) -> None:
    before = shop.rows()
    shop.declare(ledger={"schema": "another"})
    error = shop.fails("run", Refused, WHOLE)
    assert kinds(error) == ["ledger_foreign"] and "schema reslice already guards" in found(error)
    assert shop.rows() == before


def test_runs_of_two_ledgers_with_one_id_are_told_apart(shop: Shop, engine: Database, tmp_path: Path) -> None:
    engine.execute("CREATE TABLE other AS SELECT * FROM daily_orders LIMIT 0")
    contract = json.loads(shop.file.read_text())
    contract["targets"]["other"] = shop.declaration | {"table": "other", "ledger": {"schema": "second"}}
    shop.file.write_text(json.dumps(contract))
    project = engine.project(shop.file)
    assert project.target("other").run(WHOLE).id == "r-0001"
    with pytest.raises(Misused, match="r-0001 of daily_orders, r-0001 of other"):
        project.show("r-0001")
    assert project.show("r-0001", target="other").target == "other"
    assert (project.show("last").target, project.show("last~1").target) == ("other", "daily_orders")


@only("duckdb", "a macro may bear the name of a function of the database")
@pytest.mark.parametrize("macro", ["md5(x) AS 'aaaaaaaaaaaaaaaa'", "replace(x, a, b) AS x", "sum(x) AS max(x)"])
def test_a_macro_that_bears_the_name_of_a_function_of_ours_is_refused(shop: Shop, macro: str) -> None:
    shop.database.execute(f"CREATE MACRO {macro}")
    assert kinds(shop.fails("plan", Refused, WHOLE)) == ["functions_replaced"]


@pytest.mark.parametrize("step", ["comparing", "publishing"])
def test_a_column_that_appears_on_the_way_is_not_blanked(shop: Shop, step: str) -> None:
    shop.source(SOURCE.replace("sum(amount_cents)", "sum(amount_cents + 1)"))

    def add(reached: str) -> None:
        if reached == step:
            shop.database.execute("ALTER TABLE daily_orders ADD COLUMN note varchar")
            shop.database.execute("UPDATE daily_orders SET note = 'precious'")

    error = shop.fails("run", Refused, WHOLE, on_step=add)
    assert kinds(error) == ["base_moved"]
    assert shop.database.rows("SELECT DISTINCT note FROM daily_orders") == [("precious",)]


def test_a_default_that_only_looks_like_a_sequence_is_no_identity(shop: Shop) -> None:
    shop.database.execute("ALTER TABLE daily_orders ADD COLUMN note varchar DEFAULT 'nextval('")
    assert kinds(shop.fails("plan", Refused, WHOLE)) == ["target_column"]


@only("duckdb", "its client looks for tables among Python's variables")
@pytest.mark.parametrize("name", ["statement", "parameters", "self"])
def test_a_table_that_is_not_there_is_not_found_among_our_variables(shop: Shop, name: str) -> None:
    shop.source(f"SELECT * FROM {name} WHERE :start <= :end")
    error = shop.fails("plan", Misused, WHOLE)
    assert kinds(error) == ["source_invalid"] and "session.py" not in found(error)


def test_a_double_that_no_decimal_can_hold_is_refused(engine: Database) -> None:
    target = money(engine, "{}", "decimal(38,2)")
    target.source(
        "SELECT day, sum(1e30::double precision) AS revenue FROM sales WHERE day BETWEEN :start AND :end GROUP BY day"
    )
    assert "lossy_value" in kinds(target.fails("plan", Refused, JAN1))


def test_shown_sql_is_what_is_executed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.source(SOURCE.replace("sum(amount_cents)", "sum(amount_cents + 1)"))
    executed: list[str] = []
    shop.database.follow_statements(monkeypatch, lambda statement: executed.append(statement))
    run = shop.run(WHOLE)
    assert run.outcome is Outcome.PUBLISHED
    shown = ["\n".join(line for line in text.splitlines() if not line.startswith("--")) for text in run.sql]
    statements, rest = [text for text in shown if text], iter(executed)
    assert len(statements) == {"duckdb": 11, "postgresql": 13}[shop.database.name]
    assert all(text in rest for text in statements), "each is executed, in this order"


def test_a_text_no_shell_should_have_given_is_kept_readable(shop: Shop) -> None:
    run = shop.run(WHOLE, rewrite=True, allow=["total_change"], reason="said \udcff so")
    assert shop.handle.project.show(run.id or "").reason == "said ? so"


def test_a_file_that_is_no_database_is_not_retried(tmp_path: Path) -> None:
    (tmp_path / "shop.duckdb").write_text("no database" * 1000)
    (tmp_path / "source.sql").write_text(SOURCE)
    contract = {
        "version": 1,
        "connection": "duckdb:///shop.duckdb",
        "targets": {
            "daily_orders": {
                "table": "daily_orders",
                "source": "source.sql",
                "grain": ["order_date", "channel"],
                "slice": {"column": "order_date", "unit": "day"},
                "measures": ["order_count", "amount_cents"],
            }
        },
    }
    (tmp_path / "reslice.yml").write_text(json.dumps(contract))
    with pytest.raises(Misused) as caught:
        reslice.open(tmp_path / "reslice.yml").target("daily_orders").plan(WHOLE)
    assert caught.value.kind == "connection" and str(tmp_path) not in str(caught.value)
