"""Roles on PostgreSQL: the rights that the page lists are enough, each of them is needed, and nothing more is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import reslice
from reslice import ledger
from reslice.cli import main
from reslice.engines.postgres import rights
from tests.conformance.databases import PostgresDatabase, Row, only
from tests.conformance.orders import D1, D2, D3, T0, VERSION, Orders, changed, ordered
from tests.postgres import ROLE

pytestmark = only("postgresql", "a DuckDB file has no roles")

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"
LOOKS = ("plan", "status", "verify")


@dataclass(frozen=True)
class Answer:
    code: int
    text: str

    @property
    def kind(self) -> str:
        """The kind of the first failure."""
        found = re.search(r"\[(\w+)\]", self.text)
        return found[1] if found else ""

    @property
    def parts(self) -> list[str]:
        """The names of the parts of an error, one for each failure."""
        return re.findall(r"^  (asked|found|unchanged|next):", self.text, re.MULTILINE)


def statements(name: str) -> list[str]:
    """Return the statements of a list of the page."""
    found = re.search(rf"<!-- rights: {name} -->\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"the page has a list of what is needed to {name}"
    return [line.removesuffix(";") for line in found[1].splitlines()]


def single(statement: str) -> Iterator[tuple[str, str]]:
    """Yield each right that a statement gives: the word, and what it is on."""
    found = re.fullmatch(r"GRANT (.+) ON (DATABASE |SCHEMA |SEQUENCE |)(.+) TO \S+", statement)
    assert found is not None, f"{statement} grants something"
    yield from ((word, found[2] + name) for word in found[1].split(", ") for name in found[3].split(", "))


class Shop(Orders):
    """The orders as their owner has them; another role, which owns nothing, has a contract of its own."""

    database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, capsys: pytest.CaptureFixture[str], method: str) -> None:
        super().__init__(database, method=method)
        self.capsys = capsys
        self.role = f"loader_{database.catalog}"
        database.as_admin(f"CREATE ROLE {self.role} LOGIN")
        database.execute(f"REVOKE ALL ON DATABASE {database.catalog} FROM PUBLIC")
        with PostgresDatabaseAdmin(database) as admin:
            admin("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        self.theirs = self.folder / "theirs.yml"
        self.take_contract()

    def take_contract(self) -> None:
        """Give the role the contract of the owner, as it is now."""
        url = self.database.server.url(self.database.catalog, self.role)
        self.theirs.write_text(self.file.read_text().replace(self.database.url, url))

    def __call__(self, *words: str, owner: bool = False) -> Answer:
        """Run a command as the role, or as the owner."""
        file = self.file if owner else self.theirs
        code = main(["-C", str(self.folder), "--config", file.name, *words])
        said = self.capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return Answer(code, said.out + said.err)

    def listed(self, name: str) -> list[str]:
        """Return a list of the page for this database and role."""
        kept = next(each for each in [*self.database.table_names("reslice"), "kept_none"] if each.startswith("kept_"))
        words = {"shop": self.database.catalog, "loader": self.role, "analyst": self.role, "kept_0123456789ab": kept}
        pattern = re.compile(rf"\b({'|'.join(words)})\b")
        return [pattern.sub(lambda found: words[found[1]], each) for each in statements(name)]

    def grant(self, name: str) -> None:
        """Give the role what a list of the page names."""
        for statement in self.listed(name):
            self.database.execute(statement)

    def held(self) -> set[tuple[str, str]]:
        """Return every right that the role was given, as PostgreSQL has it."""
        rows = self.database.rows(
            "SELECT a.privilege_type, 'DATABASE ' || d.datname FROM pg_database AS d, aclexplode(d.datacl) AS a"
            " WHERE a.grantee = to_regrole(?) UNION ALL"
            " SELECT a.privilege_type, 'SCHEMA ' || n.nspname FROM pg_namespace AS n, aclexplode(n.nspacl) AS a"
            " WHERE a.grantee = to_regrole(?) UNION ALL"
            " SELECT a.privilege_type, CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || n.nspname || '.' ||"
            " c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace,"
            " aclexplode(c.relacl) AS a WHERE a.grantee = to_regrole(?)",
            [self.role] * 3,
        )
        return {(word, name) for word, name in rows}


class PostgresDatabaseAdmin:
    """A superuser in the database of a test, for one statement or a few."""

    def __init__(self, database: PostgresDatabase) -> None:
        import psycopg

        self._connection = psycopg.connect(database.server.url(database.catalog, "postgres"), autocommit=True)

    def __enter__(self) -> Callable[[str], Any]:
        return self._connection.execute

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@pytest.fixture
def shop(engine: PostgresDatabase, capsys: pytest.CaptureFixture[str], method: str) -> Shop:
    return Shop(engine, capsys, method)


every_method = pytest.mark.parametrize("method", ["replace_slice", "merge", "append_version"])


def rights_of_the_page() -> list[tuple[str, str]]:
    return [each for statement in statements("run") for each in single(statement)]


def test_every_table_of_the_ledger_has_its_rights() -> None:
    assert {*rights.LEDGER} == {table.name for table in ledger.TABLES}
    assert {word for words in rights.LEDGER.values() for word in words} == {"SELECT", "INSERT", "UPDATE", "DELETE"}


@every_method
def test_the_rights_of_the_page_are_enough(shop: Shop) -> None:
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.correct(1, 1100)
    after = changed((D1, "web", 2, 3600))
    first = shop("run", "daily_orders", f"{D1}..{D3}", "--allow", "total_change", "--reason", "a correction")
    assert first.code == 0, first.text
    assert shop.rows() == after
    assert shop("run", "daily_orders", f"{D1}..{D3}").code == 0
    assert shop("verify", "daily_orders", D1, "--record").code == 0
    assert shop("status", "daily_orders").code == 0
    assert shop("history").text.count("r-0") >= 3
    assert shop("show", "r-0001").code == 0
    assert shop("restore", "r-0001", "--yes").code == 0
    assert shop.rows() == ordered(T0)
    shop.database.execute("UPDATE reslice.runs SET finished_at = finished_at - INTERVAL '100 days'")
    shop.database.execute("UPDATE reslice.run_slices SET published_at = published_at - INTERVAL '100 days'")
    shop.order(20, D2, "web", 5)
    last = shop("run", "daily_orders", f"{D1}..{D3}", "--allow", "restored", "--reason", "it was right")
    assert last.code == 0, last.text
    assert "failed" not in last.text and "pruned: kept rows and groups of" in last.text
    if shop.method == "append_version":
        pruned = shop("versions", "daily_orders", f"{D1}..{D3}", "--prune", "--older-than", "0", "--yes")
        assert pruned.code == 0, pruned.text
        assert shop.database.rows(f"SELECT count(*) FROM daily_orders WHERE {VERSION} IS NULL") == [
            (2,)
        ]  # day 3, which no run wrote


def test_each_right_of_the_page_is_needed(shop: Shop) -> None:
    """Without any one of them a run ends in words, with the rows as they were, and no run left open."""
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.correct(1, 1100)
    before = shop.versions()
    for word, name in [each for statement in shop.listed("run") for each in single(statement)]:
        shop.database.execute(f"REVOKE {word} ON {name} FROM {shop.role}")
        answer = shop("run", "daily_orders", D1)
        about = f"without {word} on {name}: {answer.text}"
        wanted = {"CONNECT": (2, "connection"), "SELECT orders_fact": (3, "source_rights")}
        code, kind = wanted.get(word, wanted.get(f"{word} {name}", (3, "target_rights")))
        assert (answer.code, answer.kind) == (code, kind), about
        assert answer.parts == ["asked", "found", "unchanged", "next"], about
        told = name.rpartition(" ")[2]
        assert "TEMPORARY" in answer.text if word == "TEMPORARY" else told in answer.text, about
        assert shop.versions() == before, about
        shop.database.execute(f"GRANT {word} ON {name} TO {shop.role}")
    assert {state for (state,) in shop.database.rows("SELECT state FROM reslice.runs")} <= {"refused", "failed"}
    assert shop("run", "daily_orders", D1).code == 0
    assert shop.rows() == changed((D1, "web", 2, 3600))


def test_what_is_missing_is_named_all_at_once(shop: Shop) -> None:
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.database.execute(f"REVOKE INSERT, UPDATE ON reslice.runs, reslice.run_slices FROM {shop.role}")
    shop.database.execute("DROP TABLE reslice.versions")
    shop.database.execute("ALTER TABLE reslice.fences DROP COLUMN generation")
    shop.database.execute("ALTER TABLE daily_orders ADD COLUMN note text")
    answer = shop("run", "daily_orders", D1)
    assert answer.code == 3 and answer.kind == "target_rights"
    for words in (
        f"the role {shop.role} lacks INSERT, UPDATE on reslice.runs",
        f"the role {shop.role} lacks INSERT on reslice.run_slices",
        f"there is no table reslice.versions; the role {shop.role} may not make it",
        "reslice.fences lacks generation, from an older version",
        "which keeps the rows of public.daily_orders that are replaced; the role",
    ):
        assert words in answer.text
    way_on = f"have its owner run what  reslice --config theirs.yml init --ledger --sql --role {shop.role}  prints"
    assert f"next:       {way_on}, then  reslice" in re.sub(r"-C \S+ ", "", answer.text)


def test_without_a_ledger_the_way_on_is_told(shop: Shop) -> None:
    for statement in shop.listed("look"):
        shop.database.execute(statement)
    shop.database.execute(f"GRANT INSERT, UPDATE, DELETE ON daily_orders TO {shop.role}")
    answer = shop("run", "daily_orders", D1)
    assert answer.code == 3 and answer.kind == "target_rights"
    assert f"there is no schema reslice, and the role {shop.role} may not make one" in answer.text
    assert "reslice" not in {row[0] for row in shop.database.rows("SELECT nspname FROM pg_namespace")}
    refused = shop("init", "--ledger")
    assert refused.code == 3 and refused.kind == "target_rights"


@every_method
def test_the_printed_script_is_the_list_of_the_page(shop: Shop) -> None:
    """What a role without any right has printed, an owner runs, and then the role has what the page lists."""
    shop.database.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {shop.database.catalog} TO {shop.role}")
    shop.database.execute(f"GRANT USAGE ON SCHEMA public TO {shop.role}")
    printed = shop("init", "--ledger", "--sql")
    assert printed.code == 0, printed.text
    assert not shop.database.table_names("reslice")
    shop.database.execute(printed.text)
    listed = {each for statement in shop.listed("run") for each in single(statement)}
    qualified = {(word, name if " " in name or "." in name else f"public.{name}") for word, name in listed}
    assert shop.held() == qualified
    shop.correct(1, 1100)
    run = shop("run", "daily_orders", D1)
    assert run.code == 0, run.text
    assert shop.rows() == changed((D1, "web", 2, 3600))
    again = shop("init", "--ledger", "--sql")
    assert again.code == 0 and "CREATE" not in again.text and "GRANT" in again.text
    shop.database.execute(again.text)
    assert shop.held() == qualified


def test_the_script_is_for_the_role_that_is_named(shop: Shop) -> None:
    printed = shop("init", "--ledger", "--sql", "--role", shop.role, owner=True)
    assert printed.code == 0 and f'TO "{shop.role}"' in printed.text and "tester" not in printed.text
    shop.database.execute(printed.text)
    assert shop("run", "daily_orders", D1).code == 0


def test_a_sequence_is_granted_where_the_target_counts_by_one(shop: Shop) -> None:
    shop.database.execute("ALTER TABLE daily_orders ADD COLUMN id serial")
    shop.database.execute(shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text)
    assert ("USAGE", "SEQUENCE public.daily_orders_id_seq") in shop.held()
    shop.correct(1, 1100)
    assert shop("run", "daily_orders", D1).code == 0
    shop.database.execute(f"REVOKE USAGE ON SEQUENCE daily_orders_id_seq FROM {shop.role}")
    answer = shop("run", "daily_orders", D2)
    assert (answer.code, answer.kind) == (3, "target_rights")
    assert f"the role {shop.role} lacks USAGE on public.daily_orders_id_seq" in answer.text
    assert answer.text.count("asked:") == 1 and "asked:      ledger" not in answer.text
    recorded = shop("verify", "daily_orders", D2, "--record")
    assert recorded.code == 0, recorded.text


def test_a_role_that_is_not_there_is_warned_of(shop: Shop) -> None:
    printed = shop("init", "--ledger", "--sql", "--role", "nobody_here", owner=True)
    assert printed.code == 0 and 'TO "nobody_here"' in printed.text
    assert "warning: the server has no role nobody_here: make it before the script is run\n" in printed.text
    assert "warning:" not in shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text
    told = shop("init", "--ledger", "--sql", "--role", "nobody_here", "--json", owner=True).text
    notes = json.JSONDecoder().raw_decode(told[told.index("{") :])[0]["notes"]
    assert len(notes) == 2 and "the server has no role nobody_here" in notes[1]


@pytest.mark.parametrize("table", ["daily_orders", "public.daily_orders"])
def test_whoever_may_connect_has_the_script_printed(table: str, shop: Shop) -> None:
    """It grants the schema and the table; what is not known without rights on the schema is said."""
    shop.declare(table=table)
    shop.take_contract()
    shop.database.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {shop.database.catalog} TO {shop.role}")
    printed = shop("init", "--ledger", "--sql")
    assert printed.code == 0, printed.text
    assert f'GRANT USAGE ON SCHEMA "public", "reslice" TO "{shop.role}"' in printed.text
    assert f'GRANT SELECT, INSERT, UPDATE, DELETE ON "public"."daily_orders" TO "{shop.role}"' in printed.text
    assert "warning: what source.sql reads is not known, and not granted: " in printed.text
    told = shop("doctor")
    assert told.code == 1 and re.search(
        rf"\n  rights +WRONG +the role {shop.role} may not use the schema public, which has a table daily_orders;"
        rf" the role {shop.role} lacks SELECT, INSERT, UPDATE, DELETE on public.daily_orders\n"
        rf" +have its owner run what  reslice .* init --ledger --sql --role {shop.role}  prints\n",
        told.text,
    ), told.text
    for command in ("run", "plan"):
        refused = shop(command, "daily_orders", D1)
        assert (refused.code, refused.kind) == (3, "target_rights")
        assert f"the role {shop.role} may not use the schema public, which has a table daily_orders" in refused.text
    shop.database.execute(shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text)
    run = shop("run", "daily_orders", D1)
    assert run.code == 0, run.text


def test_everything_that_is_missing_is_told_in_one_refusal(shop: Shop) -> None:
    """Of the table, of what it counts by and of the ledger, each once; and one script grants it all."""
    shop.database.execute("ALTER TABLE daily_orders ADD COLUMN id serial")
    assert shop("init", "--ledger", owner=True).code == 0
    shop.database.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {shop.database.catalog} TO {shop.role}")
    shop.database.execute(f"GRANT USAGE ON SCHEMA public TO {shop.role}")
    answer = shop("run", "daily_orders", D1)
    assert (answer.code, answer.kind) == (3, "target_rights")
    assert answer.parts == ["asked", "found", "asked", "found", "unchanged", "next"]
    assert re.search(
        rf"  asked: +\S*table.*\n  found: +the role {shop.role} lacks SELECT, INSERT, UPDATE, DELETE on"
        rf" public.daily_orders\n +the role {shop.role} lacks USAGE on public.daily_orders_id_seq, a sequence that"
        rf" public.daily_orders counts by\n  asked: +ledger.*\n  found: +the role {shop.role} may not use the schema"
        r" reslice\n",
        answer.text,
    ), answer.text
    assert f"have its owner run what  reslice -C {shop.folder} --config theirs.yml init --ledger --sql" in answer.text
    shop.database.execute(shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text)
    assert shop("run", "daily_orders", D1).code == 0


@pytest.mark.parametrize("has_ledger", [False, True], ids=["no ledger", "a ledger it may not see"])
def test_whoever_only_looks_needs_no_ledger(has_ledger: bool, shop: Shop) -> None:
    if has_ledger:
        assert shop("run", "daily_orders", f"{D1}..{D3}", owner=True).code == 0
    shop.grant("look")
    before = shop.versions()
    for command, range in zip(LOOKS, (D1, None, D1), strict=True):
        answer = shop(command, "daily_orders", *([range] if range else []))
        assert answer.code == 0, answer.text
    refused = shop("run", "daily_orders", D1)
    assert (refused.code, refused.kind) == (3, "target_rights")
    assert f"the role {shop.role} lacks INSERT, UPDATE, DELETE on public.daily_orders" in refused.text
    assert shop.versions() == before


def test_a_ledger_that_may_not_be_read_is_not_taken_for_none(shop: Shop) -> None:
    """Whoever may look at the table alone hears so, and not that nothing ever ran; without a ledger nothing did."""
    shop.grant("look")
    assert "no run is in the ledger" in shop("history").text
    shop.correct(1, 1100)
    assert shop("run", "daily_orders", D1, owner=True).code == 0
    before = shop.versions()
    script = f"-C {shop.folder} --config theirs.yml init --ledger --sql --role {shop.role}"
    for words in (["history"], ["show", "last"], ["show", "r-0001"], ["restore", "r-0001", "--yes"]):
        answer = shop(*words)
        assert (answer.code, answer.kind) == (3, "target_rights"), answer.text
        assert f"the role {shop.role} may not read the ledger in schema reslice" in answer.text
        assert "it lacks USAGE on the schema reslice" in answer.text
        assert f"next:       have its owner run what  reslice {script}  prints, then  reslice" in answer.text
        assert answer.parts == ["asked", "found", "unchanged", "next"]
    shop.database.execute(f"GRANT USAGE ON SCHEMA reslice TO {shop.role}")
    assert "it lacks SELECT on reslice.runs\n" in shop("history").text
    shop.database.execute(f"GRANT SELECT ON reslice.runs TO {shop.role}")
    assert "r-0001" in shop("history").text
    assert "it lacks SELECT on reslice.run_slices, reslice.run_groups\n" in shop("show", "r-0001").text
    shop.database.execute(f"GRANT SELECT ON reslice.run_slices, reslice.run_groups TO {shop.role}")
    assert shop("show", "r-0001").code == 0
    assert shop.versions() == before


def test_the_way_on_names_the_role_that_lacks_something(shop: Shop) -> None:
    """Its owner runs what is printed, and it grants to the role, whoever runs it."""
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.database.execute(f"REVOKE UPDATE ON reslice.runs FROM {shop.role}")
    script = f"-C {shop.folder} --config theirs.yml init --ledger --sql --role {shop.role}"
    for words in (["run", "daily_orders", D1], ["verify", "daily_orders", D1, "--record"], ["doctor"]):
        answer = shop(*words)
        assert f"have its owner run what  reslice {script}  prints" in answer.text, answer.text
        assert answer.code == (1 if words == ["doctor"] else 3)
    shop.database.execute(f"DROP TABLE reslice.pointers; REVOKE USAGE ON SCHEMA public FROM {shop.role}")
    printed = shop(*f"init --ledger --sql --role {shop.role}".split(" "), owner=True)
    shop.database.execute(printed.text)
    assert shop("run", "daily_orders", D1).code == 0


@pytest.mark.parametrize("method", ["append_version"])
def test_versions_that_cannot_be_told_apart_are_no_versions_at_all(shop: Shop) -> None:
    shop.correct(1, 1100)
    assert shop("run", "daily_orders", D1, owner=True).code == 0
    shop.grant("look")
    answer = shop("plan", "daily_orders", D1)
    assert (answer.code, answer.kind) == (3, "target_rights")
    assert "lacks USAGE on the schema reslice, which says which versions of public.daily_orders are" in answer.text
    shop.database.execute(f"GRANT USAGE ON SCHEMA reslice TO {shop.role}")
    answer = shop("plan", "daily_orders", D1)
    assert "lacks SELECT on reslice.runs, reslice.pointers, reslice.versions" in answer.text
    shop.database.execute(f"GRANT SELECT ON reslice.runs, reslice.pointers, reslice.versions TO {shop.role}")
    answer = shop("plan", "daily_orders", D1)
    assert answer.code == 0 and "0 added, 0 changed, 0 removed, 2 unchanged" in answer.text


@pytest.mark.parametrize("method", ["append_version"])
def test_the_view_is_made_ahead_or_its_absence_refused(shop: Shop) -> None:
    assert "made the view public.daily_orders_current" in shop("init", "--ledger", owner=True).text
    shop.grant("run")
    shop.database.execute("DROP VIEW daily_orders_current")
    answer = shop("run", "daily_orders", D1)
    assert (answer.code, answer.kind) == (3, "target_rights")
    assert "there is no view public.daily_orders_current of the current versions" in answer.text
    assert shop("init", "--ledger", owner=True).code == 0
    assert shop("run", "daily_orders", D1, "--rewrite").code == 0
    view: list[Row] = shop.database.rows("SELECT count(*) FROM daily_orders_current")
    assert view == [(len(T0),)]


def test_a_right_that_is_missing_in_mid_publish_rolls_everything_back(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE audit (at timestamptz)")
    shop.database.execute(
        "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO audit VALUES (now()); RETURN NULL; END $$"
    )
    shop.database.execute("CREATE TRIGGER noted AFTER INSERT ON daily_orders EXECUTE FUNCTION noted()")
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.correct(1, 1100)
    before = shop.versions()
    answer = shop("run", "daily_orders", D1)
    assert (answer.code, answer.kind) == (3, "target_rights")
    assert "permission denied for table audit" in answer.text and "everything was rolled back" in answer.text
    assert shop.versions() == before
    assert shop.ledger("r-0001")["state"] == "refused"
    shop.database.execute(f"GRANT INSERT ON audit TO {shop.role}")
    assert shop("run", "daily_orders", D1).code == 0
    assert shop.rows() == changed((D1, "web", 2, 3600))


def test_everything_that_the_files_of_a_contract_read_is_granted(shop: Shop) -> None:
    """Tables and views that are named, in whatever schema; not what stands behind a view, and no table of a text."""
    run = shop.database.execute
    run('CREATE SCHEMA "raw data"')
    run('CREATE TABLE "raw data"."Rates" (day date, rate bigint)')
    run(f'INSERT INTO "raw data"."Rates" VALUES (\'{D1}\', 1)')
    run("CREATE TABLE behind (day date)")
    run("CREATE VIEW open_days AS SELECT * FROM behind")
    run(f"INSERT INTO behind VALUES ('{D1}')")
    run("CREATE TABLE ledger_of_money (day date, cents bigint)")
    run(f"INSERT INTO ledger_of_money VALUES ('{D1}', 4300)")
    run("CREATE TABLE changes (day date, at timestamptz)")
    shop.source(
        "WITH known AS (SELECT order_date, channel, amount_cents, 'FROM nobody' AS note FROM orders_fact)\n"
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents * rate) AS amount_cents FROM known\n"
        'JOIN "raw data"."Rates" AS r ON r.day = order_date WHERE order_date BETWEEN :start AND :end\n'
        "AND order_date IN (SELECT day FROM open_days) GROUP BY order_date, channel"
    )
    shop.source("SELECT day AS order_date, cents FROM ledger_of_money WHERE day BETWEEN :start AND :end", "money")
    shop.source("SELECT day AS order_date FROM changes WHERE at >= :since", "changes")
    shop.declare(controls={"source": "money.sql", "match": {"cents": "sum(amount_cents)"}}, affected="changes.sql")
    shop.take_contract()
    shop.database.execute(shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text)
    read = {
        name for word, name in shop.held() if word == "SELECT" and not name.startswith(("reslice.", "public.daily"))
    }
    assert read == {
        "public.orders_fact", "raw data.Rates", "public.open_days", "public.ledger_of_money", "public.changes"
    }  # fmt: skip
    assert ("USAGE", "SCHEMA raw data") in shop.held()
    shop.correct(1, 1100)
    answer = shop("run", "daily_orders", D1)
    assert answer.code == 0, answer.text
    assert shop.rows() == changed((D1, "web", 2, 3600))


def test_two_targets_share_a_ledger_and_each_has_its_own_rows_kept(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE weekly (LIKE daily_orders)")
    contract = json.loads(shop.file.read_text())
    contract["targets"]["weekly"] = contract["targets"]["daily_orders"] | {"table": "weekly"}
    shop.file.write_text(json.dumps(contract))
    shop.take_contract()
    printed = shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text
    assert printed.count("CREATE SCHEMA") == 1 and printed.count('CREATE TABLE "reslice"."runs"') == 1
    shop.database.execute(printed)
    assert len([name for name in shop.database.table_names("reslice") if name.startswith("kept_")]) == 2
    for target in ("daily_orders", "weekly"):
        assert shop("run", target, D1, "--allow", "total_change", "--reason", "the first run").code == 0
    made = shop("init", "--ledger", owner=True)
    assert made.code == 0 and "nothing was written: the ledger is there" in made.text


def test_rights_on_a_partitioned_target_are_those_on_the_whole(shop: Shop) -> None:
    shop.database.execute("DROP TABLE daily_orders")
    shop.database.execute(
        "CREATE TABLE daily_orders (order_date date, channel varchar, order_count bigint, amount_cents bigint,"
        " id bigint GENERATED ALWAYS AS IDENTITY) PARTITION BY RANGE (order_date)"
        if shop.database.server.version > 16  # identity columns of partitioned tables came with 17
        else "CREATE TABLE daily_orders (order_date date, channel varchar, order_count bigint, amount_cents bigint)"
        " PARTITION BY RANGE (order_date)"
    )
    for name, first, end in (("early", "2000-01-01", D2), ("late", D2, "2100-01-01")):
        shop.database.execute(
            f"CREATE TABLE daily_orders_{name} PARTITION OF daily_orders FOR VALUES FROM ('{first}') TO ('{end}')"
        )
    shop.fill()
    shop.database.execute(shop("init", "--ledger", "--sql", "--role", shop.role, owner=True).text)
    assert not [name for _, name in shop.held() if name.startswith("public.daily_orders_")]
    shop.correct(1, 1100)
    answer = shop("run", "daily_orders", f"{D1}..{D3}")
    assert answer.code == 0, answer.text
    assert {row[:4] for row in shop.rows()} == set(changed((D1, "web", 2, 3600)))
    assert shop("restore", "r-0001", "--yes").code == 0
    assert {row[:4] for row in shop.rows()} == set(T0)


@contextmanager
def owners_turn(shop: Shop, holder: str) -> Iterator[tuple[int, str]]:
    """Let the owner have the turn of the table, as a run or as a live writer; give the process, and what is said."""
    with psycopg.connect(shop.database.url, application_name="by hand") as owner:
        if holder == "a writer":
            stands = "another publish, or a writer that holds its writer_lock,"
            with reslice.writer_lock(owner, "daily_orders"):
                yield owner.info.backend_pid, f"{stands} has the turn of public.daily_orders"
            return
        owner.execute("LOCK TABLE daily_orders IN ROW EXCLUSIVE MODE")
        shop.correct(8, 1000)
        shop.declare(timeouts={"lock": "60s"})
        beside = threading.Thread(target=lambda: shop.run(D3))
        beside.start()
        waits = (
            "SELECT pid FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        while not (pids := shop.database.rows(waits)):
            time.sleep(0.01)
        yield pids[0][0], "run r-0001 of daily_orders has the turn of public.daily_orders"
        owner.rollback()
        beside.join()


@pytest.mark.parametrize("holder", ["a run", "a writer"])
@pytest.mark.parametrize("is_let_go", [True, False])
def test_whom_it_waits_for_is_told_with_the_rights_of_the_page(shop: Shop, holder: str, is_let_go: bool) -> None:
    """What another role does, and since when, is not for every role to see; its process, role and name are."""
    assert shop("init", "--ledger", owner=True).code == 0
    shop.grant("run")
    shop.correct(1, 1100)
    application = "reslice" if holder == "a run" else "by hand"
    with owners_turn(shop, holder) as (pid, held):
        wait = "60s" if is_let_go else "1500ms"
        script = "import sys; from reslice.cli import main; sys.exit(main())"
        words = ["-C", str(shop.folder), "--config", shop.theirs.name, "run", "daily_orders", D1, "--wait", wait]
        process = subprocess.Popen([sys.executable, "-c", script, *words], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        line = process.stderr.readline()
        who = f"{held}; process {pid}, role {ROLE}, {application}\n"
        assert line == f"waiting: {who}"
        if not is_let_go:
            process.wait(timeout=60)
    err = process.communicate(timeout=60)[1]
    if is_let_go:
        assert (process.returncode, err) == (0, "")
        assert [row for row in shop.rows() if row[0] == D1] == [(D1, "store", 1, 700), (D1, "web", 2, 3600)]
    else:
        assert process.returncode == 4 and err.startswith("failed[database_busy]: ") and f"found:      {who}" in err
