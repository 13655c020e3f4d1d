"""How PostgreSQL's errors become reslice's: what cannot be understood, what may work when it is run again."""

from __future__ import annotations

import psycopg
from psycopg import errors as driver

from reslice.contract import Contract, SqlFile
from reslice.engines.refusals import next_rights
from reslice.errors import SAME_AGAIN, Failure, Misused, Refused, ResliceError, Retryable

NEW_CONNECTION = "a new connection"
"""What is done when a connection is made ready."""

_ENDED = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"})
"""SQLSTATEs of a server, or of a session, that ends: shut down, crashed, its database dropped, or silent too long."""

CONFLICTS = (driver.SerializationFailure, driver.DeadlockDetected)
"""What a transaction ends with that another one was in the way of, and that may go through when it is run again."""

NOT_UNDERSTOOD: tuple[type[psycopg.Error], ...] = (
    driver.InvalidSchemaName,
    driver.FeatureNotSupported,
    *(
        each
        for each in vars(driver).values()
        if isinstance(each, type) and issubclass(each, psycopg.Error) and (each.sqlstate or "").startswith("42")
        if each is not driver.InsufficientPrivilege
    ),
)
"""What a statement ends with that is no SQL, or names what there is not; the driver has no one class for class 42."""


BEYOND_LIMITS = (
    driver.ProgramLimitExceeded,
    driver.StatementTooComplex,
    driver.TooManyColumns,
    driver.TooManyArguments,
)
"""What the server never does, however often it is asked; the driver counts these among errors of operation."""


def is_not_understood(error: psycopg.Error) -> bool:
    """Whether a statement is wrong as it is written, or may not be run by this role."""
    return isinstance(error, (*NOT_UNDERSTOOD, *BEYOND_LIMITS, driver.InsufficientPrivilege))


def is_row_hidden(error: psycopg.Error) -> bool:
    """Whether a row policy would have hidden rows from a query."""
    return isinstance(error, driver.InsufficientPrivilege) and "row-level security" in str(error)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, and not only the statement: an end that nobody tells of has no SQLSTATE."""
    if isinstance(error, psycopg.InterfaceError) or error.sqlstate in _ENDED:
        return True
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith("08")


def lines_of(error: psycopg.Error, most: int = 1) -> tuple[str, ...]:
    """Return what the server says: message, detail and hint, without the text of the statement and the place in it."""
    told = error.diag
    lines = [told.message_primary, told.message_detail, told.message_hint]
    texts = [line.strip() for part in lines if part for line in part.splitlines() if line.strip()]
    if not texts:  # libpq's own words: what comes after the first line are guesses
        texts = [line.strip() for line in str(error).splitlines() if line.strip()][:1] or [type(error).__name__]
    return tuple(texts[:most])


def query_failed(contract: Contract, query: SqlFile, error: psycopg.Error, *, is_understood: bool) -> ResliceError:
    """Return the error for a SQL file the server could not understand (2), or could not evaluate (4)."""
    lines = lines_of(error, 4)
    unchanged = f"{contract.table} is as it was; nothing was written"
    asked = f"{query.name} evaluated over the range"
    if is_lost(error) or isinstance(error, driver.LockNotAvailable):
        return failed(contract.name, error, asked, unchanged=unchanged)
    if isinstance(error, driver.QueryCanceled):
        lines = (f"no answer within timeouts.statement, {contract.timeouts.statement}",)
    if is_row_hidden(error):
        failure = Failure("source_rights", asked, lines, "run as a role that no row policy applies to")
        return Refused(query.name, [failure], unchanged=unchanged)
    if isinstance(error, driver.InsufficientPrivilege):
        failure = Failure("source_rights", asked, lines, "grant SELECT on it to the role that runs this")
        return Refused(query.name, [failure], unchanged=unchanged)
    if isinstance(error, driver.ReadOnlySqlTransaction) and query == contract.affected:
        asked, is_understood = "a source reads, and writes nothing", False
    if not is_understood:
        return Misused(
            query.name, [Failure("source_invalid", asked, lines, f"correct {query.name}")], unchanged=unchanged
        )
    return Retryable(query.name, [Failure("source_failed", asked, lines, SAME_AGAIN)], unchanged=unchanged)


def beyond_limits(about: str, error: psycopg.Error, doing: str, *, unchanged: str) -> Refused:
    """Return the error for a statement of our own that is beyond a limit of the server, and stays so."""
    after = "name fewer measures, or columns of shorter values: the server says what it has no room for"
    return Refused(about, [Failure("method_unsupported", doing, lines_of(error, 3), after)], unchanged=unchanged)


def failed(about: str, error: psycopg.Error, doing: str, *, unchanged: str, role: str = "") -> ResliceError:
    """Return the error for a statement of our own that the server could not run; `about` is a target or a database."""
    lines = lines_of(error, 3)
    if isinstance(error, driver.InsufficientPrivilege):
        return Refused(about, [Failure("target_rights", doing, lines, next_rights(role))], unchanged=unchanged)
    if isinstance(error, BEYOND_LIMITS):
        return beyond_limits(about, error, doing, unchanged=unchanged)
    if isinstance(error, driver.LockNotAvailable):
        return Retryable(about, [Failure("database_busy", doing, lines, SAME_AGAIN)], unchanged=unchanged)
    is_gone = is_lost(error) or isinstance(error, psycopg.OperationalError)
    is_too_slow = isinstance(error, driver.QueryCanceled) and doing != NEW_CONNECTION
    kind = "database_unavailable" if is_gone and not is_too_slow else "source_failed"
    return Retryable(about, [Failure(kind, doing, lines, SAME_AGAIN)], unchanged=unchanged)
