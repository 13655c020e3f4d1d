"""How DuckDB's errors become reslice's: what cannot be understood, what may work when it is run again."""

from __future__ import annotations

import duckdb

from reslice.contract import Contract, SqlFile
from reslice.errors import Failure, Interrupted, Misused, OutcomeUnknown, ResliceError, Retryable
from reslice.ranges import Scope


def misused(about: str, failure: Failure) -> Misused:
    """Return the error for something that cannot be used as it is written."""
    return Misused(about, [failure], unchanged="nothing was read or written")


def interrupted() -> Interrupted:
    """Return the error for a statement that was cancelled, or was not started any more."""
    failure = Failure("interrupted", "to stop", ("the statement that ran was cancelled",), "run the same command again")
    return Interrupted("interrupted", [failure], unchanged="the transaction was rolled back")


KEY_VIOLATION = duckdb.ConstraintException
"""What a statement ends with that breaks a key, or another constraint, which the database enforces."""

UNAVAILABLE = (duckdb.FatalException, duckdb.ConnectionException, duckdb.IOException)
"""What a statement ends with when it is the database that fails, and not the statement."""

CANNOT_BE_UNDERSTOOD = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.SyntaxException)


def query_failed(contract: Contract, query: SqlFile, error: duckdb.Error) -> ResliceError:
    """Return the error for a SQL file the database could not understand (2), or could not evaluate (4)."""
    lines = tuple(line for line in str(error).splitlines() if line.strip())[:4]
    unchanged = f"{contract.table} is as it was; nothing was written"
    asked = f"{query.name} evaluated over the range"
    if isinstance(error, CANNOT_BE_UNDERSTOOD):
        return Misused(
            query.name, [Failure("source_invalid", asked, lines, f"correct {query.name}")], unchanged=unchanged
        )
    after = "run the same command again; if it fails again, correct the source"
    return Retryable(query.name, [Failure("source_failed", asked, lines, after)], unchanged=unchanged)


def failed(about: str, error: duckdb.Error, doing: str, *, unchanged: str) -> ResliceError:
    """Return the error for a statement of our own that the database could not run; `about` is a target or a file."""
    lines = tuple(line for line in str(error).splitlines() if line.strip())[:3]
    kind = "database_unavailable" if isinstance(error, UNAVAILABLE) else "source_failed"
    failure = Failure(kind, doing, lines, "run the same command again")
    return Retryable(about, [failure], unchanged=unchanged)


def unknown(contract: Contract, scope: Scope, run_id: str, found: str) -> OutcomeUnknown:
    """Return the error for a commit that was sent and is not known to have landed."""
    failure = Failure("outcome_unknown", "the ledger says published", (f"{run_id}: {found}",), f"reslice show {run_id}")
    unchanged = "not known; the next run finds out from the ledger before it writes"
    return OutcomeUnknown(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)
