"""What is said when PostgreSQL cannot be connected to: correct the connection, or try again; and no secret in it.

libpq gives a failed connection no SQLSTATE, so that its words decide. Words that are not known here, such as those of a
server that speaks another language, are said as they are and may be tried again: nothing was changed by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

from reslice.errors import SAME_AGAIN, Failure, Misused, Refused, ResliceError, Retryable

MASK = "***"
UNCHANGED = "nothing was read or written"
WHOLE_LENGTH = 4
"""A hidden value of this length or more is also replaced inside a longer word."""

NAME_LENGTH = 63
"""The server cuts the name of a database or a role to this many bytes, and says it so."""

NEVER_SAID = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""The options that neither libpq nor a server ever repeats."""

LINES_MOST = 4

TEMPORARY = (
    "the database system is ",  # starting up, shutting down, in recovery mode, not (yet) accepting connections
    "too many clients already",
    "too many connections",
    "remaining connection slots are reserved",
    "no more connections allowed",  # pgbouncer and others in front of a server say the following
    "server login has been failing",
    "query_wait_timeout",
    "client_login_timeout",
    "the bouncer is shutting down",
    "pgbouncer is shutting down",
)
"""Words of a server that is there and will take a connection soon."""

MISTAKES = (
    "does not exist",
    "authentication failed",
    "authentication method",
    "authentication type",
    "no password supplied",
    "no pg_hba.conf entry",
    "pg_hba.conf rejects",
    "is not permitted to log in",
    "permission denied",
    "is not currently accepting connections",  # a database that is closed to all
    "no such database",  # pgbouncer
    "no such user",
    "unsupported startup parameter",
    "unrecognized configuration parameter",
    "invalid value for parameter",
    "invalid command-line argument",
    "requires a value",
    "definition of service",
    "service file",
    "could not match",
    "invalid integer value",
    "invalid port number",
    "bad value for",
    "connection option",
    "SSL was required",
    "server does not support SSL",
    "GSSAPI encryption required",
    "certificate verify failed",
    "server certificate",
    "certificate file",
    "private key file",
    "root certificate",
    "certificate revocation list",
    "channel binding",
    "is too long (maximum",  # the path of a socket
)
"""Words of what stays wrong however often it is tried."""

_INVALID_OPTION = re.compile(r"invalid \w+ value")
_ATTEMPT = re.compile(r"^- (host: .*?, port: .*?, hostaddr: (?:None|'[^']*')): ", re.MULTILINE)
_SERVER = re.compile(r"(?:connection failed: )?(?:connection to )?(server (?:at|on socket) .*?) failed: (.*)")
_SEVERITY = re.compile(r"^(?:connection failed: |connection is bad: )?(?:(?:FATAL|ERROR|PANIC): +)?")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'|«([^»]*)»|»([^«]*)«|„([^“]*)“")
_ALL_QUOTED = re.compile(r"[\"'].*[\"']", re.DOTALL)
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*(?:%\w+)?")


@dataclass(frozen=True, slots=True)
class Hidden:
    """What no message may hold: the values of a connection that the contract's text does not show.

    `has_host` says that one is a host, whose address says as much; `has_quote` that one which a server may repeat has a
    quotation mark in it.
    """

    values: tuple[str, ...]
    has_host: bool = False
    has_quote: bool = False

    def masked(self, text: str) -> str:
        """Return a message without any of the values, whole or in parts."""
        for value in sorted(self.values, key=len, reverse=True):
            whole = re.escape(value)
            text = re.sub(whole if len(value) >= WHOLE_LENGTH else rf"(?<!\w){whole}(?!\w)", MASK, text)
        if self.has_quote:  # where a quoted value ends cannot be told
            text = _ALL_QUOTED.sub(f'"{MASK}"', text)
        text = _QUOTED.sub(self._quoted, text) if self.values else text
        return re.sub(rf"\({_ADDRESS.pattern}\)", f"({MASK})", text) if self.has_host else text

    def _quoted(self, found: re.Match[str]) -> str:
        word = next(each for each in found.groups() if each is not None)
        is_hidden = any(word in value or value in word for value in self.values)
        is_hidden = is_hidden or (self.has_host and _ADDRESS.fullmatch(word) is not None)
        return f"{found[0][0]}{MASK}{found[0][-1]}" if word and is_hidden else found[0]


def hidden(url: str, shown: str) -> Hidden:
    """Return what messages about a connection to `url` may not hold, where `shown` is what everybody may read of it."""
    visible = _values(re.sub(r"\$\{[^{}]*\}", MASK, shown))
    kept: set[str] = set()
    has_host = has_quote = False
    for key, value in _values(url).items():
        if key in visible and MASK not in visible[key]:
            continue
        has_host = has_host or key in ("host", "hostaddr")
        has_quote = has_quote or (key not in NEVER_SAID and re.search("[\"']", value) is not None)
        kept |= {value, *(value.split(",") if key in ("host", "hostaddr", "port") else ())}
    return Hidden(tuple(sorted(_as_said(kept))), has_host, has_quote)


def _as_said(values: Iterable[str]) -> set[str]:
    """Return values as the driver may quote them and as the server may cut them."""
    said = {form for value in values for form in (value, repr(value)[1:-1])}
    said |= {value.encode()[:NAME_LENGTH].decode(errors="ignore") for value in said}
    return said - {""}


def _values(url: str) -> Mapping[str, str]:
    if "://" not in url:
        return {}
    try:
        return {key: str(value) for key, value in conninfo_to_dict(url).items() if value}
    except psycopg.ProgrammingError:
        return {}


def said(error: psycopg.Error, hide: Hidden) -> tuple[str, ...]:
    """Return what the driver said, one line for each server that was tried, without what is hidden."""
    return tuple(hide.masked(line) for line in dict.fromkeys(_lines(error)))[:LINES_MOST]


def _lines(error: psycopg.Error) -> Iterator[str]:
    for place, text in _attempts(str(error)):
        line = next((line.strip() for line in text.splitlines() if line.strip()), "the connection failed")
        found = _SERVER.search(line)
        if found:
            yield f"{found[1]}: {_SEVERITY.sub('', found[2])}"
        else:
            yield f"{place}{_SEVERITY.sub('', line)}"


def _attempts(text: str) -> Iterator[tuple[str, str]]:
    """Yield where and what of each attempt: psycopg tries every address of every host, and tells of all at the end."""
    _, *parts = _ATTEMPT.split(text)
    if not parts:
        yield "", text
    for place, message in zip(parts[::2], parts[1::2], strict=True):
        yield f"{place}: ", message


def is_temporary(error: psycopg.Error) -> bool:
    """Whether one of the servers is there and says that it will take a connection soon."""
    return any(word in _unquoted(text) for _, text in _attempts(str(error)) for word in TEMPORARY)


def is_mistake(error: psycopg.Error) -> bool:
    """Whether each server that was tried, or libpq itself, names something that has to be corrected."""
    return isinstance(error, psycopg.ProgrammingError) or all(_is_mistake(line) for line in _lines(error))


def _is_mistake(line: str) -> bool:
    words = _unquoted(line)
    return any(word in words for word in MISTAKES) or _INVALID_OPTION.search(words) is not None


def _unquoted(text: str) -> str:
    """Return a message without the names in it: a role may be called `no such user`."""
    return _QUOTED.sub('""', text)


def not_opened(shown: str, error: psycopg.Error, hide: Hidden) -> ResliceError:
    """Return the error for a connection that was not made: what to correct (2), or to try again (4)."""
    asked, lines = f"connection: {shown}", said(error, hide)
    if is_mistake(error):
        return misused(shown, lines, "correct the connection, or the rights of its role")
    return Retryable(shown, [Failure("database_unavailable", asked, lines, SAME_AGAIN)], unchanged=UNCHANGED)


def pooled(shown: str, found: str, *, unchanged: str) -> Refused:
    """Return the refusal of a proxy that was `found` to give single transactions, which no staged rows outlive."""
    asked = f"connection: {shown}; locks and temporary tables are kept from one transaction to the next"
    failure = Failure("pooler", asked, (found,), "name the server itself, or a pool in session mode")
    return Refused(shown, [failure], unchanged=unchanged)


def misused(shown: str, found: tuple[str, ...], after: str) -> Misused:
    """Return the error for a connection that cannot be used as it is written."""
    return Misused(shown, [Failure("connection", f"connection: {shown}", found, after)], unchanged=UNCHANGED)
