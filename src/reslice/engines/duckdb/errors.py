"""How DuckDB's errors become reslice's: what cannot be understood, what may work when it is run again."""

from __future__ import annotations

from pathlib import Path

import duckdb

from reslice.contract import Contract, SqlFile
from reslice.errors import SAME_AGAIN, Failure, Misused, ResliceError, Retryable


def is_signalled(error: RuntimeError) -> bool:
    """Whether an error is how the driver reports a signal that arrived during a statement."""
    return "interrupted" in str(error).lower()


_hidden: dict[str, str] = {}


def hide(path: Path, shown: str) -> None:
    """Let messages name a database file as the contract does: its path may come from a secret."""
    _hidden.update({str(path.resolve()): shown, str(path): shown})


def lines_of(error: duckdb.Error, most: int = 1) -> tuple[str, ...]:
    """Return the first lines of the driver's message, without the path of a database file."""
    text = str(error)
    for path in sorted(_hidden, key=len, reverse=True):
        text = text.replace(path, _hidden[path])
    return tuple(line for line in text.splitlines() if line.strip())[:most]


KEY_VIOLATION = duckdb.ConstraintException
"""What a statement ends with that breaks a key, or another constraint, which the database enforces."""

UNAVAILABLE = (duckdb.FatalException, duckdb.ConnectionException, duckdb.IOException)
"""What a statement ends with when it is the database that fails, and not the statement."""

CANNOT_BE_UNDERSTOOD = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.SyntaxException)


def query_failed(contract: Contract, query: SqlFile, error: duckdb.Error) -> ResliceError:
    """Return the error for a SQL file the database could not understand (2), or could not evaluate (4)."""
    lines = lines_of(error, 4)
    unchanged = f"{contract.table} is as it was; nothing was written"
    asked = f"{query.name} evaluated over the range"
    if isinstance(error, CANNOT_BE_UNDERSTOOD):
        return Misused(
            query.name, [Failure("source_invalid", asked, lines, f"correct {query.name}")], unchanged=unchanged
        )
    return Retryable(query.name, [Failure("source_failed", asked, lines, SAME_AGAIN)], unchanged=unchanged)


def failed(about: str, error: duckdb.Error, doing: str, *, unchanged: str) -> ResliceError:
    """Return the error for a statement of our own that the database could not run; `about` is a target or a file."""
    failure = Failure(_kind_of(error), doing, lines_of(error, 3), SAME_AGAIN)
    return Retryable(about, [failure], unchanged=unchanged)


def _kind_of(error: duckdb.Error) -> str:
    """Return whether the database, another transaction, or the statement itself is why it could not be run."""
    if isinstance(error, UNAVAILABLE):
        return "database_unavailable"
    return "conflict" if isinstance(error, duckdb.TransactionException) and CONFLICT in str(error) else "source_failed"


CONFLICT = "onflict on "
"""What DuckDB says where two transactions change one row, table or schema: each says what the conflict is on."""
