"""Fingerprints are the same number on DuckDB, on PostgreSQL and in plain Python, whatever a session is set to.

The Python here is written from `docs/fingerprint.md`. A value is known by its parts, from which come how each database
is told of it and the text that the fingerprint makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reslice.errors import Refused, Retryable
from tests.conformance.databases import Database, DuckDBDatabase, PostgresDatabase, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, IN_PLACE, SOURCE, T0, Orders, Target, changed, found, kinds

POSTGRES16_SLOW = True
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


def trimmed(units: int, scale: int) -> str:
    """The text of a number without trailing zeros: 1.5 and 1.50 are one number."""
    return at_scale(units, scale).rstrip("0").rstrip(".") if scale else at_scale(units, 0)


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


def spelled(units: int, scale: int) -> Value:
    """A number of any scale, which is told with more zeros than it needs."""
    told = at_scale(units, scale) + ("000" if scale else "")
    return Value(trimmed(units, scale), None, told)


def floating(number: float) -> Value:
    """A float of which two digits are declared to count: the decimal that its shortest text says, rounded."""
    rounded = Decimal(repr(number)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return Value(f"{rounded or abs(rounded):f}", None, repr(number))


EXACT = {
    "any_n": typed("numeric", st.tuples(st.integers(-(10**40), 10**40), st.integers(0, 30)).map(lambda n: spelled(*n))),
    "hundreds": typed("numeric(6,-2)", st.integers(-999_999, 999_999).map(lambda n: same(str(n * 100)))),
    "tiny": typed("numeric(2,4)", st.integers(-99, 99).map(lambda n: same(at_scale(n, 4)))),
    "nested": typed("of_of_ours", decimals(18, 2)),
    "float8": typed("double precision", st.floats(-1e15, 1e15).map(lambda n: floating(n))),
    "float4": typed("real", st.integers(-(2**20), 2**20).map(lambda n: floating(n / 4))),
}
"""What PostgreSQL alone has, or what is not said to be equal elsewhere."""


@POSTGRES
@pytest.mark.parametrize("examples", [10, pytest.param(400, marks=pytest.mark.slow)])
def test_numbers_that_postgresql_alone_has_are_by_the_definition(engine: Database, examples: int) -> None:
    engine.execute("CREATE DOMAIN at_the_bottom AS numeric(18,2)")
    engine.execute("CREATE DOMAIN of_of_ours AS at_the_bottom")
    everything = Everything(engine, EXACT, float8={"scale": 2}, float4={"scale": 2})
    held_to_the_oracle([everything], UNICODE, examples)


@POSTGRES
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("type_text", ["numeric", "double precision", "real"])
def test_a_number_that_is_none_is_refused(engine: Database, type_text: str, value: str) -> None:
    everything = Everything(engine, {"n": typed(type_text, st.nothing())}, n={"scale": 2})
    engine.execute(f"INSERT INTO facts VALUES ('{DAY}', '{value}')")
    error = everything.fails("run", Refused, DAY)
    assert kinds(error) == ["lossy_value"] and "n" in found(error) and value.lower() in found(error).lower()
    assert everything.rows() == []


HOSTILE = {
    "DateStyle": "'SQL, DMY'",
    "TimeZone": "'Asia/Kathmandu'",
    "IntervalStyle": "'iso_8601'",
    "bytea_output": "'escape'",
    "extra_float_digits": "-15",
    "search_path": "hostile, public, pg_catalog",
    "row_security": "on",
    "default_transaction_isolation": "'serializable'",
    "default_transaction_deferrable": "on",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "on",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "xmlbinary": "hex",
    "statement_timeout": "'60s'",
    "lock_timeout": "'60s'",
    "timezone_abbreviations": "'Australia'",
    "client_min_messages": "'debug1'",
    "client_encoding": "'LATIN1'",
    "enable_hashjoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
TRAPS = (
    "CREATE FUNCTION hostile.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT 'd41d8cd98f00b204e9800998ecf8427e' $$",
    "CREATE FUNCTION hostile.concat_ws(text, {texts}) RETURNS text LANGUAGE sql AS $$ SELECT 'trap' $$",
    "CREATE FUNCTION hostile.concat_ws(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'trap' $$",
    "CREATE FUNCTION hostile.left(text, integer) RETURNS text LANGUAGE sql AS $$ SELECT 'aaaaaaaaaaaaaaa' $$",
    "CREATE FUNCTION hostile.replace(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'trap' $$",
    "CREATE FUNCTION hostile.trim_scale(numeric) RETURNS numeric LANGUAGE sql AS $$ SELECT 7.0 $$",
    "CREATE FUNCTION hostile.timezone(text, timestamptz) RETURNS timestamp LANGUAGE sql AS $$ SELECT localtimestamp $$",
    "CREATE FUNCTION hostile.add(numeric, bigint) RETURNS numeric LANGUAGE sql AS $$ SELECT 7.0 $$",
    "CREATE AGGREGATE hostile.sum(bigint) (SFUNC = hostile.add, STYPE = numeric, INITCOND = '7')",
    "CREATE FUNCTION hostile.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
    "CREATE OPERATOR hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.same)",
    "CREATE FUNCTION hostile.current_schemas(boolean) RETURNS name[] LANGUAGE sql"
    " AS $$ INSERT INTO public.caught VALUES ('current_schemas') RETURNING NULL::name[] $$",
    "CREATE FUNCTION hostile.set_config(text, text, boolean) RETURNS text LANGUAGE sql"
    " AS $$ INSERT INTO public.caught VALUES ('set_config') RETURNING 'trap' $$",
    "CREATE FUNCTION hostile.pg_backend_pid() RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$",
    "CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz 'epoch' $$",
    "CREATE TABLE hostile.pg_class (relname text)",
    "CREATE TABLE hostile.runs (id text)",
)


def made_hostile(engine: Database, columns: int) -> None:
    """Set everything that a session begins with to what nobody expects."""
    assert isinstance(engine, PostgresDatabase)
    engine.execute("CREATE SCHEMA hostile")
    engine.execute("CREATE TABLE public.caught (what text)")
    for trap in TRAPS:
        engine.execute(trap.replace("{texts}", ", ".join(["text"] * columns)))
    for name, value in HOSTILE.items():
        engine.as_admin(f"ALTER DATABASE {engine.catalog} SET {name} = {value}")


@POSTGRES
@pytest.mark.parametrize("examples", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_fingerprints_do_not_depend_on_what_a_session_begins_with(engine: Database, examples: int) -> None:
    everything = Everything(engine, TYPES)
    made_hostile(engine, len(TYPES) + 1)
    held_to_the_oracle([everything], UNICODE, examples)
    assert engine.rows("SELECT * FROM public.caught") == [], "no function of another schema was called"


class Latin1(PostgresDatabase):
    """A database that holds text in one byte a letter."""

    def __init__(self, folder: Path, version: int) -> None:
        super().__init__(folder, version)
        self.as_admin(f"DROP DATABASE {self.catalog}")
        how = "ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'"
        self.as_admin(f"CREATE DATABASE {self.catalog} TEMPLATE template0 OWNER tester {how}")
        self.as_admin(f"ALTER DATABASE {self.catalog} SET client_encoding = 'UTF8'")  # what the suite writes


@POSTGRES
@pytest.mark.parametrize("examples", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_fingerprints_are_made_of_utf8_in_a_database_that_is_not(
    engine: Database, tmp_path: Path, examples: int
) -> None:
    assert isinstance(engine, PostgresDatabase)
    (tmp_path / "latin1").mkdir()
    latin1, duck = Latin1(tmp_path / "latin1", engine.server.version), duckdb_of(tmp_path)
    held_to_the_oracle([Everything(latin1, TYPES), Everything(duck, TYPES)], LATIN1, examples)
    latin1.close()
    duck.close()


@POSTGRES
def test_a_run_and_its_restore_do_not_depend_on_what_a_session_begins_with(orders: Orders) -> None:
    made_hostile(orders.database, 4)
    orders.correct(4, 1300)
    orders.cancel("order_id = 8")
    after = [*changed((D2, "web", 1, 1300))[:4], (D3, "web", 1, 5000)]
    run = orders.publish(f"{D1}..{D3}", changed=1, removed=1, unchanged=4, after=after)
    orders.puts_back(run.id, after=T0, slices=(D2, D3), added=1, changed=1, unchanged=2)
    assert orders.database.rows("SELECT * FROM public.caught") == []


@POSTGRES
@pytest.mark.parametrize("method", IN_PLACE)
def test_a_session_that_only_reads_is_refused_in_words(orders: Orders, method: str) -> None:
    database = orders.database
    assert isinstance(database, PostgresDatabase)
    database.as_admin(f"ALTER DATABASE {database.catalog} SET default_transaction_read_only = on")
    orders.correct(4, 1300)
    for command in ("plan", "run"):
        error = orders.fails(command, Refused, D2)
        assert kinds(error) == ["target_rights"] and "default_transaction_read_only" in found(error)
    database.as_admin(f"ALTER DATABASE {database.catalog} RESET default_transaction_read_only")
    assert orders.rows() == list(T0)


@POSTGRES
def test_the_contract_says_how_long_a_source_may_take_and_not_the_role(orders: Orders) -> None:
    database = orders.database
    assert isinstance(database, PostgresDatabase)
    database.as_admin(f"ALTER DATABASE {database.catalog} SET statement_timeout = '300ms'")
    orders.source(SOURCE.replace("FROM orders_fact", "FROM orders_fact, (SELECT pg_sleep(1)) AS slow"))
    orders.unchanged(D2)
    database.as_admin(f"ALTER DATABASE {database.catalog} RESET statement_timeout")
    orders.declare(timeouts={"statement": "500ms"})
    error = orders.fails("run", Retryable, D2)
    assert kinds(error) == ["source_failed"] and "timeouts.statement" in found(error)
    assert orders.rows() == list(T0)


@POSTGRES
def test_a_table_may_have_more_columns_than_a_function_has_arguments(engine: Database) -> None:
    wide = Everything(engine, {f"m{number}": typed("integer", st.nothing()) for number in range(250)})
    rows = [{name: same(str(7 * number)) for number, name in enumerate(wide.types)}]
    wide.hold(rows)
    assert wide.fingerprints() == (expected(rows), expected(rows))
    engine.execute("UPDATE facts SET m249 = 1")
    run = wide.run(DAY)
    wide.restore(run.id)
    plan = wide.plan(DAY)
    assert plan.diff is not None and str(plan.diff.base) == expected(rows) != str(plan.diff.staged)
