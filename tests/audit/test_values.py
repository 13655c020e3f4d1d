"""Dates from outside are read in the forms of many dialects, and moved as a calendar moves them."""

from __future__ import annotations

from datetime import date

import pytest
from sqlglot import exp

from reslice.audit.values import CLOCK, Value, value_of
from reslice.reading import parse

DAY = 86_400
NEW_YEAR = (date(2026, 1, 1) - date(1, 1, 1)).days * DAY


def _value(text: str, dialect: str) -> Value | None:
    script = parse.read("job.sql", f"select 1 from t where x = {text}", dialect)
    select = script.statements[0]
    assert isinstance(select, exp.Select) and not script.unread
    return value_of(select.args["where"].this.expression, script.marked.marks)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (":day", "postgres"),
        ("%(day)s", "postgres"),
        (":day::date", "postgres"),
        ("cast(:day as timestamp)", "duckdb"),
        ("$day", "duckdb"),
        ("@day", "tsql"),
        ("convert(date, @day)", "tsql"),
        ("'${day}'", "spark"),
        ("to_date('${day}')", "spark"),
        ("'{{ day }}'", "snowflake"),
        ("to_date(:day)", "snowflake"),
        ("to_timestamp(:day)", "snowflake"),
        ("parse_date('%Y-%m-%d', '{{ day }}')", "bigquery"),
        ("timestamp(@day)", "bigquery"),
        ("str_to_date(:day, '%Y-%m-%d')", "mysql"),
        ("to_date(:day, 'YYYY-MM-DD')", "oracle"),
        ("toDate(:day)", "clickhouse"),
        ("{day:Date}", "clickhouse"),
        ("date('{{ day }}')", "trino"),
        ("'${hiveconf:day}'", "hive"),
        ("date_trunc('day', :day::timestamp)", "postgres"),
    ],
)
def test_a_placeholder_is_itself_in_whatever_cast(text: str, dialect: str) -> None:
    found = _value(text, dialect)
    assert found is not None and found.key() == ("day", 0, 0)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (":day::date + interval '1 day'", "postgres"),
        ("interval '1 day' + :day::date", "postgres"),
        (":day::date + 1", "postgres"),
        ("date_add(:day, interval 1 day)", "mysql"),
        (":day + interval 1 day", "mysql"),
        ("dateadd(day, 1, @day)", "tsql"),
        ("dateadd(day, 1, :day)", "redshift"),
        ("timestamp_add(timestamp(@day), interval 24 hour)", "bigquery"),
        ("date_add('${day}', 1)", "spark"),
        ("date_sub('${day}', -1)", "spark"),
        ("date_add('day', 1, date('{{ day }}'))", "trino"),
        ("to_date(:day, 'YYYY-MM-DD') + 1", "oracle"),
        ("addDays(toDate(:day), 1)", "clickhouse"),
        ("'{{ macros.ds_add(day, 1) }}'", "postgres"),
        (":day::date + interval '2 days' - interval '1 day'", "postgres"),
    ],
)
def test_a_placeholder_is_moved_by_a_day(text: str, dialect: str) -> None:
    found = _value(text, dialect)
    assert found is not None and found.key() == ("day", 0, DAY)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("'2026-01-01'", "postgres"),
        ("date '2026-01-01'", "duckdb"),
        ("timestamp '2026-01-01 00:00:00'", "trino"),
        ("'20260101'", "tsql"),
        ("20260101", "mysql"),
        ("to_date('2026-01-01', 'YYYY-MM-DD')", "oracle"),
        ("date_from_parts(2026, 1, 1)", "snowflake"),
        ("date '2025-12-31' + 1", "postgres"),
        ("date '2025-12-01' + interval '1 month'", "postgres"),
        ("add_months(date '2024-01-01', 24)", "oracle"),
        ("'2026-01-01T00:00:00Z'", "bigquery"),
    ],
)
def test_a_written_date_is_counted_in_days(text: str, dialect: str) -> None:
    found = _value(text, dialect)
    assert found is not None and found.key() == ("", 0, NEW_YEAR)


def test_a_month_ends_on_its_last_day() -> None:
    january = _value("date '2026-01-31' + interval '1 month'", "postgres")
    leap = _value("date '2024-02-29' + interval '1 year'", "postgres")
    assert january is not None and january.seconds == NEW_YEAR + 58 * DAY  # the 28th of February
    assert leap is not None and leap.seconds == NEW_YEAR - (365 - 58) * DAY  # the 28th of February 2025


def test_the_end_of_a_day_is_told_from_its_beginning() -> None:
    for text in ("'2026-01-01 23:59:59'", "'2026-01-01 23:59:59.999'", "date '2026-01-02' - interval '1 second'"):
        found = _value(text, "postgres")
        assert found is not None and found.is_last_second and not found.is_midnight


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("current_date - 1", "postgres"),
        ("dateadd(day, -1, cast(getdate() as date))", "tsql"),
        ("yesterday()", "clickhouse"),
        ("today() - 1", "clickhouse"),
        ("trunc(sysdate) - 1", "oracle"),
    ],
)
def test_the_clock_is_known(text: str, dialect: str) -> None:
    found = _value(text, dialect)
    assert found is not None and found.base == CLOCK


@pytest.mark.parametrize("text", ["other_column", "'web'", "12", "x + 1", "greatest(:a, :b)", "date '2026-02-30'"])
def test_what_is_no_date_from_outside_is_no_value(text: str) -> None:
    assert _value(text, "postgres") is None


def test_a_placeholder_without_a_name_is_equal_to_none() -> None:
    found = _value("?", "duckdb")
    assert found is not None and found.is_nameless


def test_a_long_sum_is_read_in_little_time() -> None:
    assert _value(":day" + " + 1" * 300, "postgres") is None
