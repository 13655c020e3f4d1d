"""Errors that engines share: what cannot be used as it is written, what was stopped, and what is not known."""

from __future__ import annotations

from reslice.contract import Contract
from reslice.errors import SAME_AGAIN, Failure, Interrupted, Misused, OutcomeUnknown
from reslice.ranges import Scope


def misused(about: str, failure: Failure) -> Misused:
    """Return the error for something that cannot be used as it is written."""
    return Misused(about, [failure], unchanged="nothing was read or written")


def interrupted(about: str) -> Interrupted:
    """Return the error for a statement that was cancelled, or was not started any more."""
    failure = Failure("interrupted", "to stop", ("the statement that ran was cancelled",), SAME_AGAIN)
    return Interrupted(about, [failure], unchanged="the transaction was rolled back")


def unknown(contract: Contract, scope: Scope, run_id: str, found: str) -> OutcomeUnknown:
    """Return the error for a commit that was sent and is not known to have landed."""
    failure = Failure("outcome_unknown", "the ledger says published", (f"{run_id}: {found}",), f"reslice show {run_id}")
    unchanged = "not known; the next run finds out from the ledger before it writes"
    return OutcomeUnknown(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)
