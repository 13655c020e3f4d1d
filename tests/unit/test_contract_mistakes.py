# ruff: noqa: E501 - a table of mistakes is read one line per mistake
"""Each mistake of a contract file is named where it stands, and all of them come in one go."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.contract_texts import FULL, SMALL, changed, loaded, mistakes, write_sql

from reslice.contract_file import load
from reslice.errors import Misused


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_sql(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


T = "targets.daily."
DAY = "; did you mean day?"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("version: 1", "version: 2", "1:10  version: expected 1, the version this reslice reads, found 2"),
        ("version: 1", 'version: "1"', "1:10  version: expected 1, the version this reslice reads, found 1"),
        ("version: 1", "version: true", "1:10  version: expected 1, the version this reslice reads, found true"),
        ("version: 1\n", "", "1:1  version: this key is required and missing"),
        ("    table: daily_orders\n", "", f"4:3  {T}table: this key is required and missing"),
        ("    table:", "    tabel: x\n    table:", f"5:5  {T}tabel: unknown key; did you mean table?"),
        ("    table:", "    zzz: x\n    table:", f"5:5  {T}zzz: unknown key"),
        ("unit: day", "unti: x, unit: day", f"8:33  {T}slice.unti: unknown key; did you mean unit?"),
        ("min: 1", "mim: 1", f"10:16  {T}measures.orders.mim: unknown key; did you mean min?"),
        ("unit: day", "unit: dya", f"8:39  {T}slice.unit: expected one of hour, day, week, month, quarter, found dya{DAY}"),
        ("    table:", "    table: x\n    table:", f"6:5  {T}table: the same key again; the first one is on line 5"),
        ("    table:", "    1: x\n    table:", '5:5  targets.daily: a key must be text; write "1" with quotes'),
        ("    table:", "    null: x\n    table:", '5:5  targets.daily: a key must be text; write "null" with quotes'),
        ("    table:", "    ? [a]\n    : x\n    table:", "5:7  targets.daily: a key must be plain text"),
        ("table: daily_orders", "table: 7", f"5:12  {T}table: expected text, found 7; write it in quotes"),
        ("table: daily_orders", "table: [a]", f"5:12  {T}table: expected text, found a list"),
        ("table: daily_orders", "table:", f"5:5  {T}table: expected text, found nothing"),
        ("table: daily_orders", "table: ' '", f"5:12  {T}table: expected text that is not empty, found nothing"),
        ("table: daily_orders", 'table: "a\\0b"', f"5:12  {T}table: found a NUL or half a character"),
        ("table: daily_orders", 'table: "a\\uD800b"', f"5:12  {T}table: found a NUL or half a character"),
        ("table: daily_orders", "table: a.b.c.d", f"5:12  {T}table: expected table, schema.table or catalog.schema.table, found a.b.c.d"),
        ("table: daily_orders", "table: &a x", f"5:12  {T}table: found a YAML anchor; write the value out where it is used"),
        ("table: daily_orders", "table: *a", f"5:12  {T}table: found a YAML alias; write the value out"),
        ("table: daily_orders", "table: !!str 7", f"5:12  {T}table: found a YAML tag; quote the value if it is text"),
        ("[order_date, channel]", "order_date", f"7:12  {T}grain: expected a list, found order_date; did you mean [order_date]?"),
        ("[order_date, channel]", "[]", f"7:12  {T}grain: expected at least one entry, found none"),
        ("order_date, channel]", "order_date, 5]", f"7:25  {T}grain[1].column: expected text, found 5; write it in quotes"),
        ("order_date, channel]", "order_date, Order_Date]", f"7:25  {T}grain[1]: Order_Date is named twice"),
        ("channel]", "{colum: x, column: channel}]", f"7:26  {T}grain[1].colum: unknown key; did you mean column?"),
        ("[order_date,", "[order_day,", f"8:21  {T}slice.column: the slice column order_date is not in the grain; did you mean order_day?"),
        ("order_date, channel]", "{column: order_date, nulls: allow}]", f"7:41  {T}grain[0].nulls: the slice column decides which slice a row belongs to and cannot be NULL"),
        ("orders: {min: 1}", "channel: {min: 1}", f"10:7  {T}measures.channel: channel is already grain; a column has one part to play"),
        ("min: 1", "min: abc", f"10:21  {T}measures.orders.min: expected a number of at most 38 digits, 18 behind the point, found abc"),
        ("min: 1", "min: .nan", f"10:21  {T}measures.orders.min: expected a number of at most 38 digits, 18 behind the point, found .nan"),
        ("min: 1", "min: 1e60", f"10:21  {T}measures.orders.min: expected a number of at most 38 digits, 18 behind the point, found 1E+60"),
        ("min: 1", "scale: 19", f"10:23  {T}measures.orders.scale: expected a whole number from 0 to 18, found 19"),
        ("min: 1", "scale: 1.0", f"10:23  {T}measures.orders.scale: expected a whole number from 0 to 18, found 1.0"),
        ("min: 1", "nulls: no", f"10:23  {T}measures.orders.nulls: expected one of allow, refuse, found no"),
        ("min: 1", "min: ", f"10:16  {T}measures.orders.min: expected a value, found nothing"),
        ("unit: day", "unit: day, timezone: Europe/Amsterdm", f"8:54  {T}slice.timezone: expected a time zone such as Europe/Amsterdam, found Europe/Amsterdm; did you mean Europe/Amsterdam?"),
        ("unit: day", "unit: day, timezone: ../etc/passwd", f"8:54  {T}slice.timezone: expected a time zone such as Europe/Amsterdam, found ../etc/passwd"),
        ("source: sql/daily.sql", "source: sql/dialy.sql", f"6:13  {T}source: there is no file sql/dialy.sql; did you mean sql/daily.sql?"),
        ("source: sql/daily.sql", "source: sql", f"6:13  {T}source: the file sql cannot be read: Is a directory"),
        ("source: sql/daily.sql", "source: sql/latin.sql", f"6:13  {T}source: the file sql/latin.sql is not UTF-8 text"),
        ("sql/daily.sql", '"${file:x}"', f"6:13  {T}source: a secret is only read in connection; write the value itself here"),
        ("sql/daily.sql", "sql/two.sql", f"6:13  {T}source: expected one SELECT in sql/two.sql, found 2 statements"),
        ("sql/daily.sql", "sql/delete.sql", f"6:13  {T}source: expected a SELECT in sql/delete.sql, found DELETE"),
        ("sql/daily.sql", "sql/with.sql", f"6:13  {T}source: expected a SELECT in sql/with.sql, found INSERT"),
        ("sql/daily.sql", "sql/spill.sql", f"6:13  {T}source: sql/spill.sql: the closing bracket on line 1 has no opening one"),
        ("sql/daily.sql", "sql/misspelt.sql", f"6:13  {T}source: sql/misspelt.sql, line 2: unknown placeholder :edn; did you mean :end?"),
        ("duckdb:///retail.duckdb", "postgresql://h/db?sslmod=require", "2:13  connection: libpq has no option sslmod; did you mean sslmode?"),
        ("duckdb:///retail.duckdb", "duckbd:///x", "2:13  connection: engine duckbd is not known; this reslice knows duckdb and postgresql; did you mean duckdb?"),
        ("duckdb:///retail.duckdb", "retail.duckdb", "2:13  connection: expected a URL such as duckdb:///warehouse.duckdb or postgresql://host/database"),
        ("duckdb:///retail.duckdb", "duckdb:///", "2:13  connection: the URL names no file; write duckdb:///warehouse.duckdb"),
        ("duckdb:///retail.duckdb", "duckdb:///a%FF", "2:13  connection: the percent-escapes of the path are not UTF-8"),
        ("duckdb:///retail.duckdb", "duckdb://retail.duckdb", "2:13  connection: duckdb has no host: write duckdb:///file for a relative path, duckdb:////file for an absolute one"),
        ("duckdb:///retail.duckdb", "duckdb:///x?y=1", "2:13  connection: duckdb takes no options in the URL; a ? that belongs to the path is written %3F"),
        ("duckdb:///retail.duckdb", "duckdb:///${env:DBFILE}", "2:13  connection: the environment variable DBFILE is not set; did you mean DB_FILE?"),
        ("duckdb:///retail.duckdb", "duckdb:///${file:no/such}", "2:13  connection: the file no/such cannot be read: No such file or directory"),
        ("duckdb:///retail.duckdb", "duckdb:///${evn:X}", "2:13  connection: a secret is written ${env:NAME} or ${file:PATH}, and ends with a brace"),
        ("duckdb:///retail.duckdb", "[a]", "2:13  connection: expected text, found a list"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_where_it_stands(old: str, new: str, found: str) -> None:
    assert mistakes(changed(old, new), {"DB_FILE": "x"}) == [f"reslice.yml:{found}"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("batch_id: run_id", "cents: run_id", f"14:35  {T}stamps.cents: cents is already a measure; a column has one part to play"),
        ("batch_id: run_id", "Channel: run_id", f"14:35  {T}stamps.Channel: Channel is already grain; a column has one part to play"),
        ("batch_id: run_id", "batch_id: run", f"14:45  {T}stamps.batch_id: expected one of run_time, run_id, found run; did you mean run_id?"),
        ("sum(orders)", "sum(order)", f"15:57  {T}controls.match.orders: order is no measure of this target; did you mean orders?"),
        ("sum(orders)", "max(orders)", f"15:57  {T}controls.match.orders: expected sum(measure) or count(*), found max(orders)"),
        ("rows: COUNT", "order_date: COUNT", f"15:70  {T}controls.match.order_date: the slice column is not a figure to match"),
        ("{cents: sum(cents)}", "{}", f"26:47  {T}downstream.report.match: expected at least one entry, found none"),
        ("report:", "controls:", f"26:7  {T}downstream.controls: controls is taken; give the reader another name"),
        ("method: merge", "method: replace", f"16:13  {T}method: expected one of replace_slice, merge, append_version, replace_partition, found replace; did you mean replace_slice?"),
        ("sql/affected.sql", "sql/control.sql", f"24:15  {T}affected: sql/control.sql has no :since; it tells which slices were touched since then"),
        ("12.5%", "0.125", f"19:21  {T}guards.total_change: expected a percentage such as 50%, or allow, found 0.125; did you mean 12.5%?"),
        ("12.5%", "-5%", f"19:21  {T}guards.total_change: expected a percentage such as 50%, or allow, found -5%"),
        ("restored: allow", "restored: report", f"21:17  {T}guards.restored: expected one of stop, allow, found report"),
        ("2 days ago", "2026-02-30", f"22:23  {T}guards.closed_through: expected a date of the calendar, found 2026-02-30"),
        ("2 days ago", "yesterdya", f"22:23  {T}guards.closed_through: expected yesterday, a number of days such as 2 days ago, or a date such as 2026-01-31, found yesterdya; did you mean yesterday?"),
        ("max_slices: 12", "max_slices: 0", f"23:19  {T}guards.max_slices: expected a whole number from 1 to 100000000, found 0"),
        ("wait: 1h", "wait: 10", f"28:22  {T}timeouts.wait: expected a time such as 10m, 5s, 500ms or 1h, found 10; did you mean 10s?"),
        ("lock: 500ms", "lock: none", f"28:32  {T}timeouts.lock: expected a time such as 10m, 5s, 500ms or 1h, found none"),
        ("lock: 500ms", "lock: 0s", f"28:32  {T}timeouts.lock: expected a time of 24 days at most, and above zero where 0 would mean no limit, found 0s"),
        ("statement: 2m", "statement: 9999999999h", f"28:50  {T}timeouts.statement: expected a time of 24 days at most, and above zero where 0 would mean no limit, found 9999999999h"),
        ("keep_days: 7", "keep_days: x", f"27:40  {T}ledger.keep_days: expected a whole number from 1 to 36500, found x"),
        ("method: merge", "method:", f"16:5  {T}method: expected one of replace_slice, merge, append_version, replace_partition, found nothing"),
        ("affected: sql/affected.sql", "affected:", f"24:5  {T}affected: expected a value, found nothing"),
    ],
)  # fmt: skip
def test_each_mistake_of_the_rest_is_named_where_it_stands(old: str, new: str, found: str) -> None:
    assert mistakes(changed(old, new, FULL)) == [f"reslice.yml:{found}"]


def test_all_mistakes_of_a_file_come_in_one_go_in_the_order_of_its_lines() -> None:
    text = """\
connection: postgres2://u:hunter2@h/db
targets:
  one:
    table: a..b
    source: sql/two.sql
    grian: [x]
    slice: {column: d, unit: dya}
    measures: {n: {min: x}, n: {}}
    controls: {source: sql/no.sql, match: {a: sum(m)}}
  two: 5
"""
    assert mistakes(text) == [
        "reslice.yml:1:1  version: this key is required and missing",
        "reslice.yml:1:13  connection: a password is written out; put it outside the file and write "
        '"${env:NAME}" or "${file:PATH}"',
        "reslice.yml:1:13  connection: engine postgres2 is not known; this reslice knows duckdb and postgresql"
        "; did you mean postgresql?",
        "reslice.yml:3:3  targets.one.grain: this key is required and missing",
        "reslice.yml:4:12  targets.one.table: expected table, schema.table or catalog.schema.table, found a..b",
        "reslice.yml:5:13  targets.one.source: expected one SELECT in sql/two.sql, found 2 statements",
        "reslice.yml:6:5  targets.one.grian: unknown key; did you mean grain?",
        "reslice.yml:7:30  targets.one.slice.unit: expected one of hour, day, week, month, quarter, found dya"
        "; did you mean day?",
        "reslice.yml:8:25  targets.one.measures.n.min: expected a number of at most 38 digits, 18 behind the point, "
        "found x",
        "reslice.yml:8:29  targets.one.measures.n: the same key again; the first one is on line 8",
        "reslice.yml:9:24  targets.one.controls.source: there is no file sql/no.sql",
        "reslice.yml:9:47  targets.one.controls.match.a: m is no measure of this target",
        "reslice.yml:10:8  targets.two: expected a mapping, found 5",
    ]


def test_a_sql_file_may_have_several_mistakes() -> None:
    start = "reslice.yml:6:13  targets.daily.source: "
    assert mistakes(changed("sql/daily.sql", "sql/unbound.sql")) == [
        f"{start}sql/unbound.sql has no :start; the source must keep to the range it is given",
        f"{start}sql/unbound.sql has no :end; the source must keep to the range it is given",
    ]
    assert mistakes(changed("sql/daily.sql", "sql/empty.sql"))[0] == (
        f"{start}expected one SELECT in sql/empty.sql, found no statement"
    )
    assert mistakes(changed("sql/daily.sql", "sql/affected.sql"))[0] == (
        f"{start}sql/affected.sql, line 1: unknown placeholder :since; here there are :start, :end, "
        ":start_instant, :end_instant"
    )


def test_the_error_says_what_was_asked_left_and_what_is_next() -> None:
    with pytest.raises(Misused) as caught:
        loaded(changed("version: 1", "version: 2"))
    error = caught.value
    assert (error.exit_code, error.kind, error.about) == (2, "contract", "reslice.yml")
    assert error.unchanged == "no database was opened; nothing was written"
    assert error.next == "correct the lines named above, then  reslice plan daily RANGE"


def test_a_hundred_mistakes_are_shown_and_the_rest_counted() -> None:
    found = mistakes(SMALL + "".join(f"x{number}: 1\n" for number in range(130)))
    assert (len(found), found[-1]) == (101, "and 30 more")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "reslice.yml:1:1  expected the keys version, connection and targets, found an empty file"),
        (
            b"# only a comment\n",
            "reslice.yml:1:1  expected the keys version, connection and targets, found an empty file",
        ),
        (b"- a\n", "reslice.yml:1:1  expected the keys version, connection and targets, found a list"),
        (b"text", "reslice.yml:1:1  expected the keys version, connection and targets, found text"),
        (b"a: [1,\n", "reslice.yml:2:1  not YAML: "),
        (b"a:\n\tb: 1\n", "reslice.yml:2:1  not YAML: "),
        (b"a: 1\nb: \x00\n", "reslice.yml:2:4  not YAML: a character that YAML does not allow"),
        (b"version: 1\n---\nversion: 1\n", "reslice.yml:2:1  a second document begins here"),
        (b"[" * 5000, "reslice.yml:1:18  [0][0][0][0]: nested more than 16 levels deep"),
        (b"{a: " * 5000, "reslice.yml:1:69  a.a.a.a: nested more than 16 levels deep"),
        (b"a: \xff\n", "reslice.yml: not UTF-8 text, at line 1"),
        (bytes(range(256)), "reslice.yml: not UTF-8 text, at line 2"),
        (b"a" * (1 << 20) + b"b", "reslice.yml: larger than 1 MiB, which no contract is"),
        (b"%YAML 1.9\n---\na: 1\n", "reslice.yml:1:1  not YAML"),
        (b'a: "\\UFFFFFFFF"\n', "reslice.yml:1:1  not YAML"),
    ],
)
def test_a_file_that_is_no_contract_is_named_for_what_it_is(content: bytes, found: str) -> None:
    Path("reslice.yml").write_bytes(content)
    with pytest.raises(Misused) as caught:
        load("reslice.yml", environ={})
    assert caught.value.kind == "contract"
    assert caught.value.failures[0].found[0].startswith(found)


@pytest.mark.parametrize(
    ("path", "found", "way_on"),
    [
        ("no/reslice.yml", "no/reslice.yml: no such file", "name a contract file that is there"),
        ("sql", "sql: cannot be read: Is a directory", "name the contract file with --config"),
        ("a\0b", "a\\x00b: not a path", "name the contract file with --config"),
        ("a" * 300, "a" * 300 + ": cannot be read: File name too long", "name the contract file with --config"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(path: str, found: str, way_on: str) -> None:
    with pytest.raises(Misused) as caught:
        load(path)
    assert caught.value.failures[0].found == (found,)
    assert caught.value.next == way_on


def test_aliases_cannot_blow_up() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
    )
    assert "reslice.yml:2:8  b[0]: found a YAML alias; write the value out" in mistakes(bomb)
