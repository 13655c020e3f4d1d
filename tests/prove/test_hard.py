"""Killed at any moment the table is old or new, or it is said that it is not; and two at once double nothing, or do."""

from __future__ import annotations

import sys
from dataclasses import replace

from reslice.prove.values import Verdict
from reslice.report_prove import proof_text
from reslice.report_prove_json import proof_json
from tests.prove.shops import DELETE, REPLACE, SELECT, Shop

SLEEP = "SELECT sum(hash(a.range + b.range)) FROM range(5000) AS a, range(5000) AS b"
"""Takes some tenths of a second."""
WAITING = """
import duckdb, os, sys, time
while True:
    try:
        connection = duckdb.connect(os.environ["RESLICE_PATH"])
        break
    except duckdb.IOException:
        time.sleep(0.02)
connection.execute(sys.argv[1])
"""
"""Runs a statement as soon as nobody else has the file."""


def test_a_delete_that_is_committed_alone_is_found_by_killing(shop: Shop) -> None:
    job = f"{DELETE}; {SLEEP}; {SLEEP}; INSERT INTO daily_orders {SELECT};"
    proof = shop.prove_sql(job, crash=True, tries=4, seed=7)
    assert (proof.verdict, proof.repeatable, proof.equals_source) == (Verdict.NOT_SAFE, True, True)
    assert proof.crash is not None
    assert proof.crash.seed == 7 and len(proof.crash.tries) == 4
    torn = [each for each in proof.crash.tries if each.table == "torn"]
    assert torn and {each.rows for each in torn} == {1}, "the row of 2026-01-03 is left"


def test_one_transaction_is_old_or_new(shop: Shop) -> None:
    proof = shop.prove_sql(REPLACE, crash=True, tries=2, seed=7)
    assert proof.verdict is Verdict.PROVEN
    assert proof.crash is not None and proof.crash.ok
    assert {each.table for each in proof.crash.tries} <= {"before", "after"}


def test_two_of_which_one_could_not_open_the_file_are_no_evidence(shop: Shop) -> None:
    job = f"BEGIN; {DELETE}; INSERT INTO daily_orders {SELECT}; {SLEEP}; {SLEEP}; COMMIT;"
    proof = shop.prove_sql(job, at_once=True, tries=2)
    assert proof.at_once is not None
    assert (proof.at_once.ok, proof.at_once.together) == (None, 0)
    for pair in proof.at_once.pairs:
        assert (sorted(pair.codes), pair.is_same, pair.was_apart) == ([0, 1], True, True)
    assert (proof.verdict, proof.exit_code) == (Verdict.PROVEN, 0)
    text = proof_text(proof)
    assert "  at once     not tried: of two, one was refused by the file lock each time (2 times)\n" in text
    assert "left what one leaves" not in text
    apart = proof.at_once.pairs[0]
    together = replace(apart, codes=(0, 0), said="", was_apart=False)
    mixed = proof_text(replace(proof, at_once=replace(proof.at_once, pairs=(apart, together))))
    assert "  at once     yes: two at once, 1 time, left what one leaves\n" in mixed
    assert "1 time more, one of the two was refused by the file lock: that counts for nothing\n" in mixed
    answer = proof_json(proof)["at_once"]
    assert answer["ok"] is None and [each["at_once"] for each in answer["pairs"]] == [False, False]


def test_two_that_wait_for_the_file_are_held_against_one(shop: Shop) -> None:
    """Both open the file, one after the other, and both append."""
    statement = "INSERT INTO daily_orders VALUES ('2026-01-02', 'web', 1, 7000)"
    words = [sys.executable, "-c", WAITING, statement]
    proof = shop.prove(words, at_once=True, tries=1)
    assert proof.at_once is not None
    (pair,) = proof.at_once.pairs
    assert (pair.codes, pair.was_apart) == ((0, 0), False)
    assert proof.at_once.ok is False
    assert (proof.runs[0].state.rows, pair.state.rows) == (6, 7)
