"""Names, values and SQL files that are made to harm: they mean themselves, or are refused; nothing else is ever run."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reslice.errors import Misused, ResliceError
from reslice.values import Outcome
from tests.conformance.databases import only
from tests.conformance.orders import D1, D2, D3, SOURCE, T0, Orders, changed, kinds
from tests.conformance.test_identifiers import Named, quoted

pytestmark = only("postgresql", "what is done to a server of PostgreSQL")
POSTGRES16_SLOW = True

PIECES = (
    *('"', '""', "'", ";", "--", "/*", "*/", "\\", "$1", "$$", "$x$", "%s", "%", ":start", "::", "|", ".", " ", "\t"),
    *(
        "{0}",
        "`",
        "(",
        ")",
        "E'",
        "U&",
        "\n",
        "DROP TABLE victim",
        "o",
        "\u03bf",
        "\u043e",
        "\u0301",
        "é",
        "\u200b",
        "😀",
    ),
)
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join).filter(lambda name: "${" not in name)
"""Names of all that is hard; where a secret is asked for, a contract takes no name."""


def in_bytes(name: str, most: int = 60) -> str:
    """As much of a name as a database keeps."""
    return name.encode()[:most].decode(errors="ignore")


@pytest.fixture
def victim(orders: Orders) -> Orders:
    """The orders, and a table beside them that nothing may touch."""
    orders.database.execute("CREATE TABLE victim (n integer)")
    orders.database.execute("INSERT INTO victim VALUES (1), (2)")
    orders.database.execute("GRANT ALL ON victim TO PUBLIC")
    return orders


def is_unharmed(orders: Orders) -> bool:
    return orders.database.rows("SELECT n FROM victim ORDER BY n") == [(1,), (2,)]


@pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_names_of_any_letters_are_names(victim: Orders, examples: int) -> None:
    orders, database, numbers = victim, victim.database, itertools.count()

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(names=st.lists(NAMES, min_size=7, max_size=7))
    def check(names: list[str]) -> None:
        number = next(numbers)
        schema, table, ledger, *columns = (in_bytes(f"{place}{number}{name}") for place, name in enumerate(names))
        day, channel, count, cents = (f"c{name}" for name in columns)
        database.execute(f"CREATE SCHEMA {quoted(schema)}")
        full = f"{quoted(schema)}.{quoted(table)}"
        target = Named(orders, full, (day, channel, count, cents))
        target.declare(ledger={"schema": ledger}, controls=None)
        first = target.run(f"{D1}..{D3}")
        assert first.outcome is Outcome.PUBLISHED and target.rows() == list(T0)
        assert target.run(f"{D1}..{D3}").outcome is Outcome.UNCHANGED
        target.restore(first.id)
        assert target.rows() == [] and target.run(f"{D1}..{D3}", allow=("restored",), reason="again").target_changed
        assert target.rows() == list(T0)
        assert is_unharmed(orders) and orders.rows() == list(T0)

    check()


@pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_values_of_any_letters_are_values(victim: Orders, examples: int) -> None:
    orders = victim
    texts = NAMES | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(values=st.lists(texts, min_size=1, max_size=5, unique=True))
    def check(values: list[str]) -> None:
        orders.cancel("order_id > 8")
        orders.run(D2, allow=("restored",), reason="as before")
        for place, value in enumerate(values):
            orders.order(10 + place, D2, value, 5)
        run = orders.run(D2, allow=("restored",), reason="other values")
        there = orders.database.rows(f"SELECT channel FROM daily_orders WHERE order_date = '{D2}'")
        assert {row[0] for row in there} == {*values, "web", "store"}
        assert run.diff is not None
        assert {group.key["channel"] for group in run.diff.groups} >= {*values} - {"web", "store"}
        orders.restore(run.id)
        assert orders.rows() == list(T0) and is_unharmed(orders)

    check()


NUL_OR_WORSE = ["a\0b", "\0", "\ud800"]


@pytest.mark.parametrize("name", NUL_OR_WORSE, ids=repr)
@pytest.mark.parametrize("place", ["table", "schema", "ledger", "grain", "slice", "measure", "sql", "value"])
def test_what_no_text_can_hold_is_refused_in_words(victim: Orders, place: str, name: str) -> None:
    orders = victim
    declarations: dict[str, dict[str, Any]] = {
        "table": {"table": f'"{name}"'},
        "schema": {"table": f'"{name}".daily_orders'},
        "ledger": {"ledger": {"schema": name}},
        "grain": {"grain": ["order_date", name]},
        "slice": {"slice": {"column": name, "unit": "day"}, "grain": [name, "channel"]},
        "measure": {"measures": {"order_count": {}, name: {}}},
        "sql": {},
        "value": {},
    }
    told = {
        "sql": SOURCE.replace("WHERE", f"/* {name} */ WHERE"),
        "value": SOURCE.replace("channel,", f"'{name}' AS channel,"),
    }.get(place)
    if told is not None:
        (orders.folder / "source.sql").write_bytes(told.encode("utf-8", "surrogatepass"))
    merged = {**orders.declaration, **declarations[place]}
    contract = {"version": 1, "connection": orders.database.url, "targets": {"daily_orders": merged}}
    orders.file.write_text(json.dumps(contract))
    for command in ("plan", "run"):
        with pytest.raises(ResliceError) as caught:
            getattr(orders, command)(D2)
        assert caught.value.exit_code in (2, 3) and caught.value.failures[0].found, caught.value
    assert orders.rows() == list(T0) and is_unharmed(orders)


SELECTED = SOURCE.strip()
SEVERAL = {
    "two": f"{SELECTED}; DELETE FROM victim",
    "two, the second first": f"DELETE FROM victim; {SELECTED}",
    "out of the brackets": f"{SELECTED}) AS query; DELETE FROM victim; --",
    "out and in again": f"{SELECTED}) AS query; COMMIT; DROP TABLE victim; SELECT * FROM (SELECT 1",
    "out of a comment": f"{SELECTED} /* ) AS query; DELETE FROM victim; --",
    "behind a comment": f"{SELECTED} -- \r; DELETE FROM victim",
    "an open quote": f"{SELECTED} AND channel <> 'x",
    "an open dollar quote": f"{SELECTED} AND channel <> $$x",
    "an open name": f'{SELECTED} AND channel <> "x',
    "a backslash": SELECTED.replace("WHERE", r"WHERE channel <> '\'; DELETE FROM victim; --' AND"),
    "an escaped quote": SELECTED.replace("WHERE", r"WHERE channel <> E'\'; DELETE FROM victim; --' AND"),
    "dollar quotes": SELECTED.replace("WHERE", "WHERE channel <> $x$; DELETE FROM victim; $x$ AND"),
    "a unicode quote": SELECTED.replace("WHERE", r"WHERE channel <> U&'\0027; DELETE FROM victim; --' AND"),
    "a comment in a comment": SELECTED.replace("WHERE", "/* /* ; DELETE FROM victim; */ false; */ WHERE"),
    "a writing WITH": f"WITH gone AS (DELETE FROM victim RETURNING n) {SELECTED}",
    "a writing WITH, inside": f"SELECT * FROM (WITH gone AS (DELETE FROM victim RETURNING n) {SELECTED}) AS inside",
    "a writing WITH, materialised": f"WITH gone AS MATERIALIZED (UPDATE victim SET n = 3 RETURNING n) {SELECTED}",
    "a WITH that merges": "WITH m AS (MERGE INTO victim USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE)"
    f" {SELECTED}",
    "DELETE": "DELETE FROM victim RETURNING n",
    "INSERT": "INSERT INTO victim VALUES (3)",
    "UPDATE": "UPDATE victim SET n = 3 RETURNING n",
    "TRUNCATE": "TRUNCATE victim",
    "DROP": "DROP TABLE victim",
    "DO": "DO $$ BEGIN DELETE FROM victim; END $$",
    "CALL": "CALL harm()",
    "COPY": "COPY victim TO PROGRAM 'true'",
    "EXPLAIN": "EXPLAIN ANALYZE DELETE FROM victim",
    "EXECUTE": "PREPARE x AS DELETE FROM victim",
    "SELECT INTO": SELECTED.replace("\nFROM", " INTO TABLE taken\nFROM"),
    "a transaction": "COMMIT",
    "a setting": "SET search_path = pg_catalog",
    "a lock": f"{SELECTED} FOR UPDATE",
}
AT_LOADING = ("contract", "source_invalid")
"""What a text ends with that is no SELECT: when the contract is read, or when the server reads it."""
MEANT = {"an escaped quote", "dollar quotes", "a unicode quote", "a comment in a comment"}
"""Texts that only look as if something got out of them."""


@pytest.mark.parametrize("name", SEVERAL)
def test_no_second_statement_is_run_and_none_that_writes(victim: Orders, name: str) -> None:
    orders = victim
    orders.database.execute("CREATE PROCEDURE harm() LANGUAGE sql AS $$ DELETE FROM victim $$")
    orders.source(SEVERAL[name])
    for command in ("plan", "run", "verify"):
        if name in MEANT:
            run = getattr(orders, command)(D2)
            assert run.diff is not None and not run.diff.differing
            continue
        with pytest.raises(ResliceError) as caught:
            getattr(orders, command)(D2)
        assert caught.value.exit_code == 2 and kinds(caught.value)[0] in AT_LOADING, caught.value
    assert is_unharmed(orders) and orders.rows() == list(T0)
    assert orders.database.rows("SELECT to_regclass('taken') IS NULL") == [(True,)]


@pytest.mark.parametrize("name", ["two", "out of the brackets", "a writing WITH", "DELETE", "DO"])
@pytest.mark.parametrize("query", ["controls", "affected", "downstream"])
def test_no_other_query_of_a_contract_writes(victim: Orders, query: str, name: str) -> None:
    orders = victim
    (orders.folder / "other.sql").write_text(SEVERAL[name].replace(":end", "DATE '2999-01-01'"))
    if query == "affected":
        text = SEVERAL[name].replace(":start AND :end", "DATE '0001-01-01' AND :since")
        (orders.folder / "other.sql").write_text(text)
        orders.declare(affected="other.sql")
    elif query == "controls":
        orders.declare(controls={"source": "other.sql", "match": {"order_count": "sum(order_count)"}})
    else:
        match = {"order_count": "sum(order_count)"}
        orders.declare(downstream={"report": {"query": "other.sql", "match": match}})
    for command in ("plan", "run", "verify"):
        try:
            getattr(orders, command)(D2)
        except ResliceError as error:
            assert error.exit_code == 2 and kinds(error)[0] in AT_LOADING, error
    assert is_unharmed(orders) and orders.rows() == list(T0)


@pytest.mark.parametrize(
    "condition",
    [
        "channel <> '$1'",
        "channel <> '$start %s :end ?'",
        "channel <> $q$ $1 :start %s $q$",
        "channel <> '\"$2\"'",
        "5 % 3 = 2",
    ],
)
def test_marks_in_texts_are_text(victim: Orders, condition: str) -> None:
    victim.source(SOURCE.replace("WHERE", f"WHERE {condition} AND"))
    victim.correct(4, 1300)
    victim.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))


@pytest.mark.parametrize("mark", ["$1", "$2", "$3", "$99", "$run_id", "%s", "?"])
def test_a_mark_of_another_tool_is_no_parameter(victim: Orders, mark: str) -> None:
    victim.source(SOURCE.replace(":start AND :end", f":start AND :end AND order_date <= {mark}"))
    for command in ("plan", "run"):
        error = victim.fails(command, Misused, D2)
        assert kinds(error) == ["source_invalid"] and error.failures[0].found
    assert victim.rows() == list(T0)


def test_a_writer_of_values_is_bound_and_never_read_as_sql(victim: Orders) -> None:
    """Reasons and actors go to the ledger as they are."""
    evil = "x'); DELETE FROM victim; -- $1 %s :start \\"
    victim.correct(4, 1300)
    run = victim.run(D2, allow=("total_change",), reason=evil)
    assert victim.ledger(run.id)["reason"] == evil and is_unharmed(victim)


WRITING = "CREATE FUNCTION told(n bigint) RETURNS bigint LANGUAGE sql AS $$INSERT INTO victim VALUES (3); SELECT n$$"


@pytest.mark.parametrize("command", ["plan", "run", "verify", "status"])
def test_a_source_that_writes_is_refused_and_rolled_back(victim: Orders, command: str) -> None:
    victim.database.execute(WRITING)
    victim.source(SOURCE.replace("sum(amount_cents) AS", "told(CAST(sum(amount_cents) AS bigint)) AS"))
    error: Misused = victim.fails(command, Misused, D2)
    assert kinds(error) == ["source_invalid"] and "victim" in str(error.failures[0].found)
    assert is_unharmed(victim)
    assert victim.rows() == list(T0)


def test_a_source_may_call_functions_that_write_nothing(victim: Orders) -> None:
    victim.database.execute("CREATE FUNCTION told(n bigint) RETURNS bigint LANGUAGE sql AS 'SELECT n'")
    victim.source(SOURCE.replace("sum(amount_cents) AS", "told(CAST(sum(amount_cents) AS bigint)) AS"))
    assert victim.run(D2).outcome is Outcome.UNCHANGED
