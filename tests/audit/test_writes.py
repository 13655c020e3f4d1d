"""What a write is told to be: its way, the columns it goes by, and whether what it removes commits with it."""

from __future__ import annotations

import pytest

from reslice.audit.known import declared
from reslice.audit.sql import read_sql
from reslice.audit.text import Text
from reslice.audit.write import Way, Write
from reslice.audit.writes import writes_of

TOTALS = "select order_date, channel, count(*) as n from orders where order_date = :day group by order_date, channel"


def written(sql: str, dialect: str = "postgres") -> list[Write]:
    """Return the writes of SQL; what it declares is known."""
    text = Text("job.sql", sql)
    script, unread = read_sql(text, dialect, {})
    assert not unread
    known = declared([each.node for each in script.statements], dialect)
    script, _ = read_sql(text, dialect, known)
    return list(writes_of(script))


def only(sql: str, dialect: str = "postgres") -> Write:
    (write,) = written(sql, dialect)
    return write


@pytest.mark.parametrize(
    ("sql", "dialect", "way"),
    [
        (f"insert into daily {TOTALS}", "postgres", Way.APPEND),
        (f"insert into daily {TOTALS} on conflict do nothing", "postgres", Way.FILL),
        (f"insert into daily {TOTALS} on conflict (order_date) do update set n = excluded.n", "postgres", Way.UPSERT),
        (f"insert into daily {TOTALS} on duplicate key update n = n", "mysql", Way.FILL),
        (f"insert into daily {TOTALS} on duplicate key update n = values(n)", "mysql", Way.UPSERT),
        (f"replace into daily {TOTALS}", "mysql", Way.UPSERT),
        (f"insert overwrite table daily {TOTALS}", "spark", Way.OVERWRITE),
        (f"insert into daily replace where order_date = '2026-01-01' {TOTALS}", "databricks", Way.OVERWRITE),
        (f"insert into daily replace using (order_date) {TOTALS}", "databricks", Way.KEYED),
        (f"create or replace table daily as {TOTALS}", "snowflake", Way.REPLACE),
        ("select order_date, count(*) as n into daily from orders group by order_date", "tsql", Way.REPLACE),
        (f"truncate table daily; insert into daily {TOTALS}", "postgres", Way.EMPTIED),
        (f"delete from daily; insert into daily {TOTALS}", "postgres", Way.EMPTIED),
        (f"delete from daily where true; insert into daily {TOTALS}", "bigquery", Way.EMPTIED),
        (f"delete from daily where order_date = :day; insert into daily {TOTALS}", "postgres", Way.RANGED),
        (f"alter table daily drop partition (d = '1'); insert into daily {TOTALS}", "hive", Way.RANGED),
        (f"alter table daily delete where d = '1'; insert into daily {TOTALS}", "clickhouse", Way.RANGED),
        (f"truncate table daily partition (d = '1'); insert into daily {TOTALS}", "spark", Way.RANGED),
        (f"truncate daily_2026_01; insert into daily {TOTALS}", "postgres", Way.RANGED),
        ("update daily set n = 0", "postgres", Way.UPDATE),
    ],
)
def test_the_way_of_a_write(sql: str, dialect: str, way: Way) -> None:
    assert only(sql, dialect).way is way


def merged(*whens: str, on: str = "t.order_date = s.order_date and t.channel = s.channel") -> Write:
    return only(f"merge into daily as t using ({TOTALS}) as s on {on} {' '.join(whens)}", "databricks")


UPDATE = "when matched then update set n = s.n"
INSERT = "when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n)"
DELETE = "when not matched by source then delete"


def test_the_way_of_a_merge() -> None:
    assert merged(UPDATE).way is Way.UPDATE
    assert merged(INSERT).way is Way.FILL
    assert merged(UPDATE, INSERT).way is Way.UPSERT
    assert merged(UPDATE, INSERT, DELETE).way is Way.SYNC
    assert merged(INSERT, on="false").way is Way.APPEND
    assert merged(INSERT, DELETE, on="false").way is Way.SYNC


def test_a_key_is_told_by_what_is_compared() -> None:
    write = merged(UPDATE, on="t.order_date <=> s.order_date and coalesce(t.channel, '') = coalesce(s.channel, '')")
    assert write.keys == ("order_date", "channel")
    assert all(match.is_null_safe for match in write.matches)
    assert not any(match.is_null_safe for match in merged(UPDATE).matches)


def test_the_grain_has_the_names_of_the_table() -> None:
    query = "select date(ts) as d, way, count(*) as n from orders group by 1, 2"
    assert only(f"insert into daily (order_date, channel, n) {query}").grain == ("order_date", "channel")
    with_columns = f"create table daily (order_date date, channel text, n int); insert into daily {query}"
    assert only(with_columns).grain == ("order_date", "channel")
    merge = f"merge into daily as t using ({query}) as s on t.order_date = s.d and t.channel = s.way {UPDATE}"
    assert only(merge, "bigquery").grain == ("order_date", "channel")


def test_a_delete_by_keys_is_told_from_a_list_of_days_to_renew() -> None:
    stage = f"create temporary table today as {TOTALS};"
    write = only(
        f"{stage} delete from daily where order_date in (select order_date from today); "
        "insert into daily select * from today"
    )
    assert (write.way, write.keys) == (Way.KEYED, ("order_date",))
    write = only(f"delete from daily where order_date in (select day from to_renew); insert into daily {TOTALS}")
    assert write.way is Way.RANGED


def test_what_commits_together() -> None:
    delete, insert = "delete from daily where order_date = :day;", f"insert into daily {TOTALS};"
    assert only(f"begin; {delete} {insert} commit;").is_atomic
    assert only(f"begin; {delete} commit; {insert}").is_atomic is False
    assert only(f"{delete} {insert}").is_atomic is False
    assert only(f"with gone as (delete from daily where order_date = :day) {insert}").is_atomic


def test_what_only_serves_a_later_write_is_no_write() -> None:
    assert [
        each.table for each in written(f"create temporary table a as {TOTALS}; insert into daily select * from a")
    ] == ["daily"]
    (write,) = written(
        f"create table #a (d date, c int, n int); insert into #a {TOTALS}; insert into daily select * from #a", "tsql"
    )
    assert (write.table, write.is_aggregate, write.grain) == ("daily", True, ("d", "c"))
    swapped = "alter table daily_new swap with daily"
    (write,) = written(f"create table daily_new like daily; insert into daily_new {TOTALS}; {swapped}", "snowflake")
    assert write.way is Way.REPLACE


def test_one_statement_may_write_several_tables() -> None:
    sql = "from orders insert overwrite table a select d, count(*) group by d insert into table b select d"
    first, second = written(sql, "hive")
    assert (first.table, first.way, first.is_aggregate) == ("a", Way.OVERWRITE, True)
    assert (second.table, second.way, second.is_aggregate) == ("b", Way.APPEND, False)


def test_an_alias_stands_for_its_table() -> None:
    assert only("update d set n = s.n from daily as d join other as s on s.id = d.id", "tsql").table == "daily"
    through = (
        f"with t as (select * from daily where order_date = :day) merge t using ({TOTALS}) s on t.n = s.n {UPDATE};"
    )
    assert only(through, "tsql").table == "daily"


@pytest.mark.parametrize(
    ("query", "is_aggregate"),
    [
        (TOTALS, True),
        ("select count(*) from orders", True),
        ("select * from (select d, sum(x) as x from orders group by d) as s where x > 0", True),
        ("select d, x from orders", False),
        ("select distinct d from orders", False),
        ("select d, sum(x) over (partition by d) from orders", False),
        (
            "select o.d, s.x from orders as o join (select d, sum(x) as x from orders group by d) as s on s.d = o.d",
            False,
        ),
        (
            "select c.day, s.x from calendar as c left join (select d, sum(x) as x from o group by d) as s on d = day",
            True,
        ),
        ("select d from a union all select d from b group by d", True),
    ],
)
def test_whether_rows_are_aggregated(query: str, is_aggregate: bool) -> None:
    assert only(f"insert into daily {query}").is_aggregate is is_aggregate


def test_rows_of_a_statement_that_lists_them_are_no_aggregate() -> None:
    write = only("insert into daily values (:day, 'web', 3)")
    assert (write.is_aggregate, write.query) == (False, None)
