"""How libpq understands the URL of a PostgreSQL connection: what is wrong with it is found without a server.

No message shows a value: a badly written password may have ended up in any of them. An option is named, by what stands
in the contract file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from reslice.contract_values import near

SCHEMES = ("postgresql", "postgres")
FILES = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")
"""The options that name a file. A relative one is beside the contract file, as every path in it."""

NUMBERS = (
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
)

_NO_DRIVER = 'PostgreSQL needs the driver psycopg, which is not installed: pip install "reslice[postgres]"'
_PUT_IN = "the value that was put in makes no URL that libpq can read"
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PORT_MOST = 65535


def read(written: str, url: str, folder: Path) -> tuple[str, list[str]]:
    """Return the URL that libpq is given, and everything that is wrong with it.

    `written` is the contract's text with a mark for each secret, `url` the same with what the secrets hold. Where both
    are broken the message is about the text, which may be quoted; where only `url` is, it says no more than that.
    """
    try:
        from psycopg import OperationalError
        from psycopg.pq import Conninfo
    except ImportError:
        return url, [_NO_DRIVER]
    if "\0" in url:
        return url, ["a URL holds no NUL character"]
    options = tuple(option.keyword.decode() for option in Conninfo.parse(b""))
    scheme, _, rest = url.partition("://")
    url = f"{scheme.lower()}://{rest}"
    if broken := dict.fromkeys(_broken(written, options, is_written=True)):
        return url, [*broken]
    if any(_broken(url, options, is_written=False)):
        return url, [_PUT_IN]
    try:
        parsed = Conninfo.parse(url.encode())
        values = {option.keyword.decode(): option.val.decode() for option in parsed if option.val}
    except OperationalError:
        return url, [_PUT_IN if written != url else "libpq cannot read it as a URL; write postgresql://host/database"]
    except UnicodeError:
        return url, ["what it holds is not UTF-8 text"]
    return _beside(url, values, folder), [*_impossible(values)]


def _broken(url: str, options: tuple[str, ...], *, is_written: bool) -> Iterator[str]:
    """Yield what keeps libpq from reading a URL, or makes it read another than was meant; values are not shown."""
    if "://" not in url:
        return
    rest = url.partition("://")[2]
    place = without_options(rest)
    query = rest[len(place) + 1 :]
    if _BROKEN_ESCAPE.search(f"{place}?{query}"):
        yield "a % that is no percent-escape is written %25"
    if re.search(r"%00", url):
        yield "a URL holds no NUL character"
    if re.search(r"\s", url):
        yield "a space in a URL is written %20"
    if "@" in place.rpartition("@")[0] or "@" in place.partition("/")[2]:
        yield "an @ in a name or a password is written %40, a / is written %2F"
    if place.rpartition("@")[2].count("[") != place.rpartition("@")[2].count("]"):
        yield "an IPv6 address stands between [ and ]"
    for pair in query.split("&") if query else ():
        key, equals, value = pair.partition("=")
        if not equals or "=" in value:
            yield "options are written ?key=value&key=value; an = or & inside a value is written %3D or %26"
        elif (name := unquote(key)) not in options and (name, value) != ("ssl", "true"):
            # What follows an @ may be the host, and what stands before it the rest of a badly written password.
            is_named = is_written and _KEY.fullmatch(name) is not None and "@" not in query
            yield f"libpq has no option {name}{near(name, options)}" if is_named else "an option is not one of libpq's"


def without_options(rest: str) -> str:
    """Return what stands between :// and the question mark of the options, as libpq tells them apart.

    An @ before the first slash ends the user and the password, which may hold a question mark.
    """
    at, slash = rest.find("@"), rest.find("/")
    begin = at if at >= 0 and (slash < 0 or at < slash) else 0
    end = rest.find("?", begin)
    return rest if end < 0 else rest[:end]


def _impossible(values: Mapping[str, str]) -> Iterator[str]:
    """Yield what libpq can read and no connection can be made with."""
    ports = values.get("port", "").split(",")
    if any(port and not (_NUMBER.fullmatch(port) and 0 < int(port) <= _PORT_MOST) for port in ports):
        yield f"a port is a whole number from 1 to {_PORT_MOST}; a / or an @ of a password is written %2F or %40"
    for key in NUMBERS:
        if key in values and not _NUMBER.fullmatch(values[key]):
            yield f"{key} is a whole number"
    if "replication" in values:
        yield "replication makes a connection for replicas, on which no table is written; leave it out"


def _beside(url: str, values: Mapping[str, str], folder: Path) -> str:
    """Return the URL with each relative file taken from `folder`; it is the same URL where none is relative."""
    moved = {
        key: str((folder / values[key]).absolute())
        for key in FILES
        if key in values and not Path(values[key]).is_absolute() and not _is_no_file(key, values[key])
    }
    if not moved:
        return url
    return "postgresql://?" + "&".join(f"{key}={quote(value, safe='')}" for key, value in {**values, **moved}.items())


def _is_no_file(key: str, value: str) -> bool:
    """Whether libpq gives the value another meaning: the system's certificates, or a key that an engine holds."""
    return (key, value) == ("sslrootcert", "system") or (key == "sslkey" and ":" in value)
