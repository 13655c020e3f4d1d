"""Measures of every type: they are compared, published, kept and guarded against a live update alike."""

from __future__ import annotations

from typing import Any

import pytest

from reslice.errors import Retryable
from tests.conformance.databases import Database, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, Target, kinds

MEASURES = {
    "tinyint": ("tinyint", "127", "1"),
    "smallint": ("smallint", "32767", "-32768"),
    "integer": ("integer", "2147483647", "0"),
    "bigint": ("bigint", "9223372036854775807", "-9223372036854775808"),
    "hugeint": ("hugeint", "170141183460469231731687303715884105727", "0"),
    "utinyint": ("utinyint", "255", "0"),
    "usmallint": ("usmallint", "65535", "0"),
    "uinteger": ("uinteger", "4294967295", "0"),
    "ubigint": ("ubigint", "18446744073709551615", "0"),
    "decimal": ("decimal(12,2)", "9999999999.99", "-9999999999.99"),
    "whole decimal": ("decimal(38,0)", "99999999999999999999999999999999999999", "0"),
    "fraction": ("decimal(4,4)", "0.9999", "-0.9999"),
    "double": ("double precision", "0.0", "1e15"),
    "real": ("real", "1.5", "0.0"),
    "boolean": ("boolean", "true", "false"),
    "varchar": ("varchar", "''", "'a|b\\c'"),
    "nocase": ("varchar COLLATE NOCASE", "'web'", "'Web'"),
    "date": ("date", "DATE '2000-01-01'", "DATE '9999-12-31'"),
    "time": ("time", "TIME '00:00:00'", "TIME '23:59:59.999999'"),
    "timestamp": ("timestamp", "TIMESTAMP '2000-01-01 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
    "timestamp_s": ("timestamp_s", "TIMESTAMP_S '2000-01-01 00:00:00'", "TIMESTAMP_S '1969-12-31 23:59:59'"),
    "timestamp_ms": ("timestamp_ms", "TIMESTAMP_MS '2000-01-01 00:00:00'", "TIMESTAMP_MS '1969-12-31 23:59:59.999'"),
    "timestamptz": ("timestamptz", "TIMESTAMPTZ '2000-01-01 00:00:00+00'", "TIMESTAMPTZ '2024-11-03 05:30:00+00'"),
    "uuid": ("uuid", "'00000000-0000-0000-0000-000000000000'::uuid", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"),
    "enum": ("mood", "'sad'::mood", "'happy'::mood"),
    "one enum": ("mood", "'happy'::mood", "'sad'::mood"),
}
"""Type, one value (mostly one at an edge of the type), another value."""

OF_DUCKDB = {
    "tinyint",
    "hugeint",
    "utinyint",
    "usmallint",
    "uinteger",
    "ubigint",
    "nocase",
    "timestamp_s",
    "timestamp_ms",
}
KINDS = [pytest.param(kind, marks=only("duckdb", "its own type")) if kind in OF_DUCKDB else kind for kind in MEASURES]


class Measured(Target):
    """One row per day with one measure of a type, and a second row that stays as it is."""

    def __init__(self, engine: Database, type_text: str, one: str, other: str, *, scale: bool) -> None:
        engine.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        engine.execute(f"CREATE TABLE facts (day date, channel varchar, found {type_text})")
        engine.execute(f"CREATE TABLE measured (day date, channel varchar, found {type_text})")
        for day, channel, value in ((D2, "web", one), (D2, "app", other), (D3, "web", other), (D3, "app", "NULL")):
            engine.execute(f"INSERT INTO facts VALUES (DATE '{day}', '{channel}', {value})")
        declaration: dict[str, Any] = {
            "table": "measured",
            "source": "source.sql",
            "grain": ["day", "channel"],
            "slice": {"column": "day", "unit": "day"},
            "measures": {"found": {"nulls": "allow", **({"scale": 2} if scale else {})}},
            "guards": ALLOWED,
            "timeouts": {"lock": "30ms"},
        }
        super().__init__(engine, "measured", declaration, "SELECT * FROM facts WHERE day BETWEEN :start AND :end")

    def versions(self) -> list[Any]:
        return self.database.rows(
            f"SELECT {self.database.place}, day, channel, CAST(found AS VARCHAR) FROM measured ORDER BY 1"
        )

    def rows(self) -> list[Any]:
        return self.database.rows("SELECT day, channel, CAST(found AS VARCHAR) FROM measured ORDER BY 1, 2, 3")

    def source_rows(self) -> list[Any]:
        return self.database.rows("SELECT day, channel, CAST(found AS VARCHAR) FROM facts ORDER BY 1, 2, 3")


@pytest.mark.parametrize("kind", KINDS)
def test_a_measure_of_every_type_is_replaced_and_a_live_update_of_it_is_a_conflict(engine: Database, kind: str) -> None:
    type_text, one, other = MEASURES[kind]
    target = Measured(engine, type_text, one, other, scale=kind in ("double", "real"))
    target.publish(f"{D1}..{D3}", added=4, after=target.source_rows())

    web = f"WHERE day = DATE '{D2}' AND channel = 'web'"
    for value in (other, "NULL", one):
        engine.execute(f"UPDATE facts SET found = {value} {web}")
        run = target.publish(f"{D1}..{D3}", changed=1, unchanged=3, after=target.source_rows())
        assert run.slices_done == (D2,)
    answer = target.verify(f"{D1}..{D3}")
    assert answer.repeatable and answer.equals_source

    engine.execute(f"UPDATE facts SET found = {other} {web}")
    with engine.session() as writer:
        writer.execute("BEGIN")
        # A writer of the same row, and of the row beside it that is written again with the value it has.
        for channel, value in (("web", "NULL"), ("app", one)):
            writer.execute(f"UPDATE measured SET found = {value} WHERE day = DATE '{D2}' AND channel = '{channel}'")
            error = target.fails("run", Retryable, D2)
            assert kinds(error) == ["conflict"]
            writer.execute("ROLLBACK")
            writer.execute("BEGIN")
    target.publish(D2, changed=1, unchanged=1, after=target.source_rows())


@pytest.mark.parametrize("kind", ["double", "real", "bigint", "decimal", "varchar", "timestamptz"])
def test_a_measure_that_is_null_is_guarded_as_well(engine: Database, kind: str) -> None:
    type_text, one, other = MEASURES[kind]
    target = Measured(engine, type_text, "NULL", "NULL", scale=kind in ("double", "real"))
    target.run(f"{D1}..{D3}")
    engine.execute(f"UPDATE facts SET found = {one} WHERE day = DATE '{D2}' AND channel = 'web'")
    with engine.session() as writer:
        writer.execute("BEGIN")
        writer.execute(f"UPDATE measured SET found = {other} WHERE day = DATE '{D2}' AND channel = 'app'")
        assert kinds(target.fails("run", Retryable, D2)) == ["conflict"]
        writer.execute("COMMIT")
    assert target.database.rows(f"SELECT count(found) FROM measured WHERE day = DATE '{D2}'") == [(1,)]
    target.publish(D2, changed=2, after=target.source_rows())


def test_a_float_that_is_no_number_in_the_target_is_replaced(engine: Database) -> None:
    target = Measured(engine, "double precision", "1.5", "2.5", scale=True)
    engine.execute(f"INSERT INTO measured VALUES (DATE '{D2}', 'web', 'nan'), (DATE '{D2}', 'app', '-inf')")
    target.publish(D2, changed=2, after=target.source_rows()[:2])


def test_enum_and_uuid_keys_are_keys(engine: Database) -> None:
    engine.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    engine.execute("CREATE TABLE keyed (day date, mood mood, id uuid, flag boolean, clock time, n bigint)")
    source = (
        f"SELECT DATE '{D2}' AS day, 'ok'::mood AS mood, k = 1 AS flag,"
        " TIME '12:00:00' + k * INTERVAL '1 minute' AS clock, k AS n,"
        " CAST('00000000-0000-0000-0000-00000000000' || k AS uuid) AS id"
        " FROM generate_series(0, 1) AS t (k) WHERE :start <= :end"
    )
    declaration: dict[str, Any] = {
        "table": "keyed",
        "source": "source.sql",
        "grain": ["day", "mood", "id", "flag", "clock"],
        "slice": {"column": "day", "unit": "day"},
        "measures": ["n"],
    }
    target = Target(engine, "keyed", declaration, source)
    assert target.run(D2).diff is not None
    assert engine.rows("SELECT mood, CAST(id AS VARCHAR), flag, CAST(clock AS VARCHAR), n FROM keyed ORDER BY n") == [
        ("ok", "00000000-0000-0000-0000-000000000000", False, "12:00:00", 0),
        ("ok", "00000000-0000-0000-0000-000000000001", True, "12:01:00", 1),
    ]
    run = target.run(D2)
    assert run.diff is not None and run.diff.counts.unchanged == 2 and not run.diff.counts.any
