"""Fingerprints are the same number on DuckDB, on PostgreSQL and in plain Python, whatever a session is set to.

The Python here is written from `docs/fingerprint.md`. A value is known by its parts, from which come how each database
is told of it and the text that the fingerprint makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.databases import Database, DuckDBDatabase, only
from tests.conformance.orders import ALLOWED, Target

POSTGRES = only("postgresql", "what PostgreSQL makes of a value is held to the others")
DAY, NEXT = "2024-03-01", "2024-03-02"


@dataclass(frozen=True)
class Value:
    """One value: its canonical text, None for NULL, and how DuckDB and PostgreSQL read it."""

    text: str | None
    duckdb: str | None
    postgresql: str | None

    def literal(self, engine: str, type_text: str) -> str:
        spelled = self.duckdb if engine == "duckdb" else self.postgresql
        return "NULL" if spelled is None else f"CAST('{spelled.replace(chr(39), chr(39) * 2)}' AS {type_text})"


NULL = Value(None, None, None)


def same(text: str) -> Value:
    return Value(text, text, text)


def oracle(rows: Iterable[dict[str, Value]]) -> str:
    """The fingerprint by its definition."""
    count = total = 0
    for row in rows:
        texts = []
        for name in sorted(row):
            text = row[name].text
            texts.append("N" if text is None else "V" + text.replace("\\", "\\\\").replace("|", "\\p"))
        total += int(md5("|".join(texts).encode()).hexdigest()[:15], 16)
        count += 1
    return f"{count}:{total}"


# --- values of each type ----------------------------------------------------------------------------------------------


def integers(bits: int) -> st.SearchStrategy[Value]:
    low, high = -(2**bits), 2**bits - 1
    return (st.sampled_from((low, low + 1, -1, 0, 1, high)) | st.integers(low, high)).map(lambda n: same(str(n)))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Value]:
    most = 10**digits - 1
    whole = st.sampled_from((-most, most, 0, 5 * 10**scale, 15 * 10 ** (scale - 1) if scale else 15))
    return (whole | st.integers(-most, most)).map(lambda n: same(at_scale(n, scale)))


def at_scale(units: int, scale: int) -> str:
    """The text of a decimal, from how many of its smallest units it is."""
    digits = f"{abs(units):0{scale + 1}d}"
    sign = "-" if units < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def plain_number(text: str) -> str:
    """A number without trailing zeros: 1.5 and 1.50 are one number."""
    return (
        f"{Decimal(text).normalize():f}".replace("-0", "0") if not Decimal(text) else f"{Decimal(text).normalize():f}"
    )


def day_value(ordinal: int) -> Value:
    """A day counted from 0001-01-01, which is 0; days before it have years before Christ."""
    return dated(ordinal, "")


def dated(ordinal: int, clock: str) -> Value:
    cycles, within = divmod(ordinal, 146_097)  # 400 years
    day = date.fromordinal(within + 1)
    year = day.year + 400 * cycles
    rest = f"-{day.month:02d}-{day.day:02d}"
    if year > 0:
        return same(f"{year:04d}{rest}{clock}")
    text = f"{1 - year:04d}{rest} (BC){clock}"
    return Value(text, text, f"{1 - year:04d}{rest}{clock} BC")


def clock_text(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return shown + (f".{fraction:06d}".rstrip("0") if fraction else "")


MICROSECONDS = st.sampled_from((0, 1, 500_000, 86_399_999_999)) | st.integers(0, 86_399_999_999)
ORDINALS = st.sampled_from((-1, -366, -16_000, 0, 719_162, 719_163, 3_652_058, 3_652_059, 4_000_000)) | st.integers(
    -700_000, 4_500_000
)
"""Days around the years 1, 1970 and 9999, and beyond them."""
INFINITE = st.sampled_from((same("infinity"), same("-infinity")))
DATES = ORDINALS.map(day_value) | INFINITE
TIMESTAMPS = st.tuples(ORDINALS, MICROSECONDS).map(lambda at: dated(at[0], f" {clock_text(at[1])}")) | INFINITE


def instant(utc: Value) -> Value:
    """An instant, of which the text is its wall time in UTC."""
    assert utc.duckdb is not None and utc.postgresql is not None
    if "infinity" in utc.duckdb:
        return utc
    wall = utc.postgresql.removesuffix(" BC")
    return Value(utc.text, f"{utc.duckdb}+00", f"{wall}+00{utc.postgresql[len(wall) :]}")


def texts(alphabet: st.SearchStrategy[str], most: int) -> st.SearchStrategy[Value]:
    pieces = st.sampled_from(("", "|", "\\", "\\p", "|N", "V", "N", "'", '"', "a|b\\c", "$1", "%s", " x ", "\n"))
    written = pieces | st.text(alphabet, max_size=most) | st.tuples(pieces, st.text(alphabet, max_size=3)).map("".join)
    return written.map(lambda text: same(text[:most]))


UNICODE = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from("😀é́İßﬁ\u0301\u200b")
LATIN1 = st.characters(min_codepoint=1, max_codepoint=255)
MOODS = ("calm", "a|b", "back\\slash", "it's", 'quo"te', "", "é")


@dataclass(frozen=True)
class Typed:
    """A column: its type on each engine, its values, and a domain's or an enum's making."""

    duckdb: str
    postgresql: str
    values: Callable[[st.SearchStrategy[str]], st.SearchStrategy[Value]]


def typed(type_text: str, values: st.SearchStrategy[Value], postgresql: str = "") -> Typed:
    return Typed(type_text, postgresql or type_text, lambda alphabet: values)


_LABELS = ", ".join("'" + mood.replace("'", "''") + "'" for mood in MOODS)
TYPES: dict[str, Typed] = {
    "i2": typed("smallint", integers(15)),
    "i4": typed("integer", integers(31)),
    "i8": typed("bigint", integers(63)),
    "n2": typed("decimal(18,2)", decimals(18, 2)),
    "n10": typed("decimal(30,10)", decimals(30, 10)),
    "n0": typed("decimal(30,0)", decimals(30, 0)),
    "flag": typed("boolean", st.sampled_from((same("true"), same("false")))),
    "d": typed("date", DATES),
    "t": typed("time", MICROSECONDS.map(lambda at: same(clock_text(at)))),
    "ts": typed("timestamp", TIMESTAMPS),
    "tz": typed("timestamptz", TIMESTAMPS.map(instant)),
    "txt": Typed("varchar", "text", lambda alphabet: texts(alphabet, 12)),
    "vc": Typed("varchar", "varchar(9)", lambda alphabet: texts(alphabet, 9)),
    "ch": Typed(
        "varchar", "char(9)", lambda alphabet: texts(alphabet, 9).map(lambda each: same((each.text or "").rstrip(" ")))
    ),
    "mood": typed("mood", st.sampled_from(MOODS).map(same)),
    "id": typed("uuid", st.uuids().map(lambda each: same(str(each)))),
    "d_int": typed("smallint", integers(15), "small"),
    "d_dec": typed("decimal(18,2)", decimals(18, 2), "money_of_ours"),
    "d_txt": Typed("varchar", '"Odd Text"', lambda alphabet: texts(alphabet, 9)),
    "d_day": typed("date", DATES, "any_day"),
    "d_at": typed("timestamptz", TIMESTAMPS.map(instant), "any_instant"),
}
DOMAINS = (
    "CREATE DOMAIN small AS smallint CHECK (VALUE IS NOT NULL OR true)",
    "CREATE DOMAIN money_of_ours AS numeric(18,2)",
    'CREATE DOMAIN "Odd Text" AS varchar(12)',
    "CREATE DOMAIN any_day AS date",
    "CREATE DOMAIN any_instant AS timestamptz",
)
KEYS = ("txt", "i8", "n2", "d", "tz", "mood", "ch", "id", "d_dec")
"""Columns that are in the grain as well: they may be NULL there."""


def rows_of(alphabet: st.SearchStrategy[str], types: dict[str, Typed], most: int) -> st.SearchStrategy[Any]:
    columns = {name: st.just(NULL) | each.values(alphabet) | each.values(alphabet) for name, each in types.items()}
    row = st.fixed_dictionaries(columns)
    return st.lists(row, max_size=most, unique_by=lambda each: tuple(each[key].text for key in KEYS if key in each))


class Everything(Target):
    """A table of every type, and another of the same that it is computed from."""

    def __init__(self, database: Database, types: dict[str, Typed], **keys: Any) -> None:
        self.types, self.engine = types, database.name
        database.execute(f"CREATE TYPE mood AS ENUM ({_LABELS})")
        if self.engine != "duckdb":
            for domain in DOMAINS:
                database.execute(domain)
        columns = ", ".join(f"{name} {getattr(each, self.engine)}" for name, each in types.items())
        for table in ("facts", "everything"):
            database.execute(f"CREATE TABLE {table} (day date, {columns})")
        grain = [name for name in KEYS if name in types]
        declaration = {
            "table": "everything",
            "source": "everything.sql",
            "grain": ["day", *({"column": name, "nulls": "allow"} for name in grain)],
            "slice": {"column": "day", "unit": "day"},
            "measures": {name: {"nulls": "allow"} | keys.get(name, {}) for name in types if name not in grain},
            "guards": ALLOWED,
        }
        folder = database.folder
        (folder / "everything.sql").write_text("SELECT * FROM facts WHERE day BETWEEN :start AND :end")
        super().__init__(database, "everything", declaration, "SELECT :start, :end")

    def hold(self, rows: list[dict[str, Value]]) -> None:
        """Let both tables hold these rows, and one of another day, which counts nowhere."""
        named = [(name, getattr(each, self.engine)) for name, each in self.types.items()]
        for table in ("facts", "everything"):
            self.database.execute(f"DELETE FROM {table}")
            if rows:
                told = ([row[name].literal(self.engine, type_text) for name, type_text in named] for row in rows)
                listed = ", ".join(f"(DATE '{DAY}', {', '.join(each)})" for each in told)
                self.database.execute(
                    f"INSERT INTO {table} VALUES {listed}, (DATE '{NEXT}'{', NULL' * len(self.types)})"
                )

    def fingerprints(self) -> tuple[str, str]:
        """What a plan says of base and staged rows."""
        run = self.plan(DAY)
        assert run.diff is not None and not run.diff.differing
        return str(run.diff.base), str(run.diff.staged)


def expected(rows: list[dict[str, Value]]) -> str:
    return oracle({"day": same(DAY), **row} for row in rows)


def held_to_the_oracle(
    engines: list[Everything], alphabet: st.SearchStrategy[str], examples: int, most: int = 12
) -> None:
    phases = [Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if examples > 100 else [])]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
    @given(rows=rows_of(alphabet, engines[0].types, most))
    def check(rows: list[dict[str, Value]]) -> None:
        told = expected(rows)
        for each in engines:
            each.hold(rows)
            assert each.fingerprints() == (told, told), each.engine

    check()


def duckdb_of(folder: Path) -> DuckDBDatabase:
    (folder / "duck").mkdir()
    return DuckDBDatabase(folder / "duck")


@POSTGRES
@pytest.mark.parametrize("examples", [15, pytest.param(400, marks=pytest.mark.slow)])
def test_fingerprints_are_equal_on_duckdb_postgresql_and_in_python(
    engine: Database, tmp_path: Path, examples: int
) -> None:
    duck = duckdb_of(tmp_path)
    held_to_the_oracle([Everything(engine, TYPES), Everything(duck, TYPES)], UNICODE, examples)
    duck.close()
