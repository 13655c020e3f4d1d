"""The `connection` of a contract file: a URL, with secrets that come from the environment or from files.

What a secret holds is in `Connection.url` and nowhere else: every message, and the masked form, is made from the text
before anything was put in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from reslice.contract import Connection
from reslice.contract_values import near

ENGINES = ("duckdb",)
ENGINES_LATER = {"postgresql": "postgresql", "postgres": "postgresql"}
MASK = "***"
MEMORY = ":memory:"

_SECRET = re.compile(r"\$\{(env|file):([^{}]+)\}")
_SECRET_LIMIT = 65536
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET_KEY = re.compile(r"(?i)passw(?:or)?d|pwd|secret|token|passphrase|apikey|api_key|access_key")
_QUERY_VALUE = re.compile(r"(?<=[?&;])([^=&;#?]*)=([^&;#]*)")


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
        mistakes.append("expected a URL such as duckdb:///warehouse.duckdb" + _origin(text))
    elif scheme is not None and scheme[1].lower() not in ENGINES:
        mistakes.append(_unknown_engine(scheme[1].lower(), is_written=written is not None))
    if mistakes or unfilled or scheme is None:
        raise Mistaken(*mistakes, *unfilled)
    return Connection(scheme[1].lower(), url, masked(text), _duckdb_path(url[scheme.end() :], folder))


def _unknown_engine(engine: str, *, is_written: bool) -> str:
    if engine in ENGINES_LATER:
        return f"{ENGINES_LATER[engine]} is not yet supported; the engine this reslice knows is duckdb"
    if not is_written:
        return "the value that was put in names an engine that is not known; this reslice knows duckdb"
    return f"engine {engine} is not known; this reslice knows duckdb{near(engine, ENGINES)}"


def masked(text: str) -> str:
    """Return a URL with its password, and each query value whose key sounds like a secret, replaced by ***."""
    whole, held = _hold(text)
    start = whole.find("://") + 3
    if start >= 3:
        user, colon, password, end = _user_and_password(whole, start)
        if colon and password:
            whole = f"{whole[:start]}{user}:{MASK}{whole[end:]}"
    whole = _QUERY_VALUE.sub(lambda found: f"{found[1]}={MASK}" if _keeps_secret(found) else found[0], whole)
    return _put_back(whole, held)


def _literal_password(text: str) -> bool:
    """Whether a password or secret is written in the file itself; one that is empty is none."""
    whole, held = _hold(text)
    start = whole.find("://") + 3
    written = []
    if start >= 3:
        written.append(_user_and_password(whole, start)[2])
    written += [found[2] for found in _QUERY_VALUE.finditer(whole) if _keeps_secret(found)]
    return any(value and not any(mark in value for mark in held) for value in written)


def _keeps_secret(found: re.Match[str]) -> bool:
    return bool(found[2]) and _SECRET_KEY.search(found[1]) is not None


def _hold(text: str) -> tuple[str, dict[str, str]]:
    """Replace each secret by a mark without punctuation, so that its own colon is not read as part of the URL."""
    held: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        name = f"\ue000{len(held)}\ue001"
        held[name] = found[0]
        return name

    return _SECRET.sub(mark, text), held


def _put_back(text: str, held: Mapping[str, str]) -> str:
    for name, secret in held.items():
        text = text.replace(name, secret)
    return text


def _user_and_password(url: str, start: int) -> tuple[str, str, str, int]:
    """Return user, colon, password, and where the password ends; all empty when the URL names no user.

    The last @ before a query counts: a password with a slash or an @ in it, though badly written, is still a password.
    """
    rest = url[start:].partition("?")[0]
    before, at, _ = rest.rpartition("@")
    if not at:
        return "", "", "", start
    user, colon, password = before.partition(":")
    return user, colon, password, start + len(before)


def _fill(text: str, folder: Path, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    mistakes: list[str] = []

    def value(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
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

    filled = _SECRET.sub(value, text)
    if "${" in _SECRET.sub("", text):
        mistakes.append("a secret is written ${env:NAME} or ${file:PATH}, and ends with a brace")
    return filled, mistakes


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
