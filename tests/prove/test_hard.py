"""Killed at any moment the table is old or new, or it is said that it is not; and two at once double nothing, or do."""

from __future__ import annotations

from reslice.prove.values import Verdict
from reslice.report_prove import proof_text
from tests.prove.shops import DELETE, REPLACE, SELECT, Shop

SLEEP = "SELECT sum(hash(a.range + b.range)) FROM range(5000) AS a, range(5000) AS b"
"""Takes some tenths of a second."""


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


def test_two_at_once_on_a_file_are_told_apart_by_who_may_open_it(shop: Shop) -> None:
    job = f"BEGIN; {DELETE}; INSERT INTO daily_orders {SELECT}; {SLEEP}; {SLEEP}; COMMIT;"
    proof = shop.prove_sql(job, at_once=True, tries=2)
    assert proof.at_once is not None and proof.at_once.ok
    failed = [pair for pair in proof.at_once.pairs if sorted(pair.codes) == [0, 1]]
    assert failed and "lock on file" in failed[0].said
    assert proof.exit_code == 0
    text = proof_text(proof)
    assert "left what one leaves" in text and "it could not open the file, since DuckDB lets one process write" in text
