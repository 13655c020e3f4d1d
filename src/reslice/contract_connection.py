"""The `connection` of a contract file: a URL, with secrets that come from the environment or from files.

What a secret holds is in `Connection.url` and nowhere else: every message, and the masked form, is made from the text
before anything was put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from reslice import contract_libpq
from reslice.contract import Connection
from reslice.contract_values import near

ENGINES = ("duckdb", "postgresql")
KNOWN = " and ".join(ENGINES)
MASK = "***"
MEMORY = ":memory:"

_SECRET = re.compile(r"\$\{(env|file):([^{}]+)\}")
_MARK = re.compile("\ue000[0-9]+\ue001")
_SECRET_LIMIT = 65536
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET_KEY = re.compile(r"(?i)passw(?:or)?d|pwd|secret|token|passphrase|apikey|api_key|access_key|scram_\w+_key")
_MASKED_KEY = re.compile(rf"{_SECRET_KEY.pattern}|sslkey$")
"""A secret may not be written in the file; where a key lies may be, and is not shown to everybody either."""

_QUERY_KEY = re.compile(r"(?<=[?&;])([^=&;?]*)=")
_IN_VALUE = re.compile(r"[?&][^=&?]*=[^&]*\Z")


class Mistaken(Exception):
    """What is wrong with a connection, each in one line that shows no secret."""

    def __init__(self, *mistakes: str) -> None:
        self.mistakes = mistakes
        super().__init__("; ".join(mistakes))


def has_secret(text: str) -> bool:
    """Whether text asks for a secret, in the right form or in one that was meant to be."""
    return "${" in text


def read(text: str, folder: Path, environ: Mapping[str, str]) -> Connection:
    """Return the connection that `text` means; relative paths start at `folder`.

    Raises Mistaken with everything that is wrong.
    """
    mistakes = []
    if _literal_password(text):
        mistakes.append('a password is written out; put it outside the file and write "${env:NAME}" or "${file:PATH}"')
    url, unfilled = _fill(text, folder, environ)
    written = _SCHEME.match(text)
    scheme = written or _SCHEME.match(url)
    if scheme is None and not unfilled:
        example = "duckdb:///warehouse.duckdb or postgresql://host/database"
        mistakes.append(f"expected a URL such as {example}{_origin(text)}")
    elif scheme is not None and _engine(scheme) not in ENGINES:
        mistakes.append(_unknown_engine(_engine(scheme), is_written=written is not None))
    if mistakes or unfilled or scheme is None:
        raise Mistaken(*mistakes, *unfilled)
    if _engine(scheme) == "duckdb":
        return Connection("duckdb", url, masked(text), _duckdb_path(url[scheme.end() :], folder))
    url, mistakes = contract_libpq.read(_hold(text)[0], url, folder)
    if mistakes:
        raise Mistaken(*mistakes)
    return Connection("postgresql", url, masked(text))


def _engine(scheme: re.Match[str]) -> str:
    name = scheme[1].lower()
    return "postgresql" if name in contract_libpq.SCHEMES else name


def _unknown_engine(engine: str, *, is_written: bool) -> str:
    if not is_written:
        return f"the value that was put in names an engine that is not known; this reslice knows {KNOWN}"
    return f"engine {engine} is not known; this reslice knows {KNOWN}{near(engine, ENGINES)}"


def masked(text: str) -> str:
    """Return a URL with its password, and each query value whose key sounds like a secret, replaced by ***."""
    whole, held = _hold(text)
    for start, end in sorted(_spans(whole, _MASKED_KEY), reverse=True):
        whole = whole[:start] + MASK + whole[end:]
    return _put_back(whole, held)


def _literal_password(text: str) -> bool:
    """Whether a password or secret is written in the file itself; one that is empty is none."""
    whole, held = _hold(text)
    written = [whole[start:end] for start, end in _spans(whole, _SECRET_KEY)]
    return any(not any(mark in value for mark in held) for value in written)


def _spans(whole: str, keys: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return where a URL holds the password, and the values of `keys`: from and to, none empty, none inside another.

    Keys may be written with percent-escapes, and a value goes on to the next & whatever else it holds.
    """
    found = [*_value_spans(whole, keys)]
    start = whole.find("://") + 3
    if start >= 3:
        *_, password, end = _user_and_password(whole, start)
        found.append((end - len(password), end))
    separate: list[tuple[int, int]] = []
    for begin, end in sorted(each for each in found if each[0] < each[1]):
        if separate and begin < separate[-1][1]:
            separate[-1] = (separate[-1][0], max(end, separate[-1][1]))
        else:
            separate.append((begin, end))
    return separate


def _value_spans(whole: str, keys: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    for found in _QUERY_KEY.finditer(whole):
        if keys.search(unquote(found[1])):
            end = whole.find("&", found.end())
            yield found.end(), len(whole) if end < 0 else end


def _hold(text: str) -> tuple[str, dict[str, str]]:
    """Replace each secret by a mark without punctuation, so that its own colon is not read as part of the URL."""
    held: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        name = f"\ue000{len(held)}\ue001"
        held[name] = found[0]
        return name

    return _SECRET.sub(mark, text), held


def _put_back(text: str, held: Mapping[str, str]) -> str:
    return _MARK.sub(lambda found: held.get(found[0], found[0]), text)


def _user_and_password(url: str, start: int) -> tuple[str, str, str, int]:
    """Return user, colon, password, and where the password ends; all empty when the URL names no user.

    The last @ before the options counts: a password with a slash or an @ in it, though badly written, is still a
    password. The options begin at a question mark that is not in it.
    """
    before, at, _ = contract_libpq.without_options(url[start:]).rpartition("@")
    if not at:
        return "", "", "", start
    user, colon, password = before.partition(":")
    return user, colon, password, start + len(before)


def _fill(text: str, folder: Path, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the URL with what its secrets hold, and why one of them has no value."""
    mistakes: list[str] = []

    def value(secret: str) -> str:
        kind, _, name = secret[2:-1].partition(":")
        if kind == "env":
            if name not in environ:
                mistakes.append(f"the environment variable {name} is not set{near(name, set(environ))}")
            return environ.get(name, "")
        try:
            with (folder / name).open(encoding="utf-8") as file:
                content = file.read(_SECRET_LIMIT)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
            mistakes.append(f"the file {name} cannot be read: {reason}")
            return ""
        return content.removesuffix("\n").removesuffix("\r")

    whole, held = _hold(text)
    filled = _put_in(whole, {mark: value(secret) for mark, secret in held.items()})
    if "${" in whole:
        mistakes.append("a secret is written ${env:NAME} or ${file:PATH}, and ends with a brace")
    return filled, mistakes


def _put_in(whole: str, values: Mapping[str, str]) -> str:
    """Return the URL with the values in the place of their marks.

    For PostgreSQL a value that is a part of the URL means itself: what has a meaning in a URL is percent-encoded. One
    that is the whole URL, or its beginning, is taken as it is.
    """
    plain = _put_back(whole, values)
    scheme = _SCHEME.match(plain)
    if scheme is None or _engine(scheme) != "postgresql":
        return plain
    start = whole.find("://") + 3
    user_end = _user_and_password(whole, start)[3] if start >= 3 else 0
    place_end = min(each for each in (whole.find("/", user_end), whole.find("?", user_end), len(whole)) if each >= 0)
    for mark, value in values.items():
        at = whole.find(mark)
        is_option = _IN_VALUE.search(whole[:at]) is not None
        if is_option or (3 <= start <= at and not user_end <= at < place_end):
            values = {**values, mark: quote(value, safe="", errors="surrogateescape")}
        elif 3 <= start <= at:
            values = {**values, mark: quote(value, safe=":,[]", errors="surrogateescape")}  # hosts and ports
    return _put_back(whole, values)


def _origin(text: str) -> str:
    return "; the value that was put in makes none" if has_secret(text) else ""


def _duckdb_path(rest: str, folder: Path) -> Path | None:
    """Return the file behind `duckdb://`: one slash and a relative path, or two and an absolute one."""
    if not rest.startswith("/"):
        raise Mistaken(
            "duckdb has no host: write duckdb:///file for a relative path, duckdb:////file for an absolute one"
        )
    if "?" in rest:
        raise Mistaken("duckdb takes no options in the URL; a ? that belongs to the path is written %3F")
    if rest[1:] == MEMORY:
        return None
    try:
        name = unquote(rest[1:], errors="strict")
    except UnicodeDecodeError:
        raise Mistaken("the percent-escapes of the path are not UTF-8") from None
    if not name.strip("/") or name.endswith("/") or "\0" in name:
        raise Mistaken("the URL names no file; write duckdb:///warehouse.duckdb")
    return folder / name
