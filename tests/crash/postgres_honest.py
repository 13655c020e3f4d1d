"""What must be true whatever came in the way of a run on PostgreSQL: what was told, and what is there."""

from __future__ import annotations

import copy
import re
from collections import Counter

from reslice.errors import Interrupted, OutcomeUnknown, PartlyPublished, ResliceError, Retryable
from reslice.values import Outcome, Run
from tests import orders_project as project
from tests.crash.postgres_scenario import PostgresScenario, forget_temporary_tables, locks_of, wait_until_alone
from tests.model import Call
from tests.model_rows import Row

SLOW_COMMIT = """
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(SECONDS); RETURN NULL; END $$;
CREATE TABLE slow_commits (n int);
CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON slow_commits DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slowly();
CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO slow_commits VALUES (1); RETURN NULL; END $$;
CREATE TRIGGER once AFTER INSERT ON daily_orders FOR EACH STATEMENT EXECUTE FUNCTION once();
"""
"""A commit that takes its time: a constraint that is looked at when all is done."""


def slow_commits(scenario: PostgresScenario, seconds: float) -> None:
    with scenario.reader() as reader:
        reader.execute(SLOW_COMMIT.replace("SECONDS", str(seconds)))


def new_rows(scenario: PostgresScenario, call: Call) -> Counter[Row]:
    imagined = copy.deepcopy(scenario.model)
    imagined.run(call)
    return Counter(imagined.rows)


def rows_in(scenario: PostgresScenario) -> Counter[Row]:
    with scenario.reader() as reader:
        return Counter(project.rows_of(reader))


def last_run(scenario: PostgresScenario) -> project.LedgerRow:
    with scenario.reader() as reader:
        return project.runs_of(reader)[-1]


def ends(scenario: PostgresScenario, call: Call) -> Run | ResliceError:
    try:
        return scenario.run(call)
    except ResliceError as error:
        return error


def finishes(scenario: PostgresScenario, call: Call, *, is_crashed: bool = False) -> None:
    """Run the same command again: it ends at the new rows, and once more changes nothing; nothing is left behind.

    A server that crashed (`is_crashed`) keeps temporary tables in its catalog until their place is used again.
    """
    first = scenario.run(call)
    assert first.outcome in (Outcome.PUBLISHED, Outcome.UNCHANGED, Outcome.RESTORED)
    once_more = Call(call.target, call.first, call.last, restores=call.restores)
    assert scenario.run(once_more).outcome is Outcome.UNCHANGED
    wait_until_alone(scenario)
    if is_crashed:
        forget_temporary_tables(scenario)
    with scenario.reader() as reader:
        new = copy.deepcopy(scenario.model)
        new.run(call)
        found = project.current_of(reader) or project.rows_of(reader)
        assert Counter(row.values for row in found) == Counter(row.values for row in new.current)
        assert project.tables_of(reader) == {"orders", "daily_orders"}
        assert locks_of(reader) == []


def shape(statement: str) -> str:
    """Return a statement without the names that are of one run."""
    return re.sub(r"[0-9a-f]{12}", "", statement)


def honest(scenario: PostgresScenario, call: Call, ended: Run | ResliceError, statement: str) -> None:
    """Hold the database to what was returned or raised: who is told that nothing changed finds nothing changed."""
    with scenario.reader() as reader:
        rows, (pointers, _) = Counter(project.rows_of(reader)), project.versions_of(reader)
        runs = project.runs_of(reader)[len(scenario.model.runs) :]
    is_old = (rows, pointers) == (Counter(scenario.model.rows), scenario.model.pointers)
    if isinstance(ended, Run):
        assert rows == new_rows(scenario, call), statement
        assert runs[-1].state == ended.outcome.value, statement
        assert runs[-1].is_finished
    elif isinstance(ended, PartlyPublished):
        assert not is_old, statement
        assert (runs[-1].state, runs[-1].error_kind) == ("failed", "partly_published"), statement
    elif isinstance(ended, Retryable | Interrupted):
        assert is_old, statement
        is_request = bool(runs) and runs[-1].state == "requested" and runs[-1].staged_order is None
        assert not runs or runs[-1].state == "failed" or is_request, f"{runs[-1]} at {statement}"
    else:
        assert isinstance(ended, OutcomeUnknown), f"{ended!r} at {statement}"
        assert ended.kind == "not_read_back", f"{ended} at {statement}"
        assert rows == new_rows(scenario, call), statement
        assert runs[-1].state in ("published", "restored"), statement
