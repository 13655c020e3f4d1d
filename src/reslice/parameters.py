"""The `:name` placeholders and the statements of a SQL file, found without understanding SQL.

Text is cut into tokens by the lexical rules that DuckDB and PostgreSQL share, so that a colon or semicolon inside a
string, quoted name, comment or dollar quote is never mistaken for one of ours. Nothing here raises on any text; whether
the SQL is right is the database's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

LOWER = ("start", "start_instant")
UPPER = ("end", "end_instant")
BOUNDS = ("start", "end", "start_instant", "end_instant")
SINCE = "since"
KNOWN = (*BOUNDS, SINCE)

READING_VERBS = frozenset({"SELECT", "FROM", "VALUES", "TABLE"})
"""What the main verb of a query may be; FROM and TABLE stand for SELECT on DuckDB and PostgreSQL."""

_WRITING_VERBS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_VERBS = READING_VERBS | _WRITING_VERBS | {"REPLACE", "CREATE", "DROP", "ALTER", "TRUNCATE", "COPY", "CALL"}

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\r\n]*)
    | (?P<block>/\*)
    | (?P<string>[eE]'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+' | '[^']*+(?:''[^']*+)*+')
    | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
    | (?P<open>(?:[eE]?'|").*)
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.$]*)
    | (?P<operator>::|:=)
    | (?P<placeholder>:[^\W\d]\w*)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SILENT = ("space", "comment")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL text. `closed` is False for a quote or comment that the text ends inside of."""

    kind: str
    text: str
    start: int
    closed: bool = True

    @property
    def end(self) -> int:
        """The offset just behind the piece."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A placeholder that is not one of the names allowed there, its 1-based line, and a name that looks like it."""

    name: str
    line: int
    near: str | None


@lru_cache(maxsize=4)
def tokens(sql: str) -> tuple[Token, ...]:
    """Cut `sql` into pieces that, joined, are `sql` again; a placeholder's text begins with its colon.

    The texts that were cut last are kept: each is looked at several times, one question after the other.
    """
    return tuple(_cut(sql))


def _cut(sql: str) -> Iterator[Token]:
    position = 0
    brackets: list[bool] = []
    """For each open bracket of any kind, innermost last: whether it is a subscript, where a colon cuts a list."""
    while position < len(sql):
        found = _TOKEN.match(sql, position)
        assert found is not None, "the last alternative matches any character"
        kind, text = str(found.lastgroup), found.group()
        closed = True
        if kind == "block":
            kind, (text, closed) = "comment", _block_comment(sql, position)
        elif kind == "dollar":
            kind, (text, closed) = "string", _dollar_quote(sql, position, text)
        elif kind == "open":
            kind, closed = "string", False
        elif kind == "placeholder" and (_is_joined(sql, position) or (brackets and brackets[-1])):
            kind, text = "symbol", ":"
        elif text in "([{":
            brackets.append(text == "[" and _is_subscript(sql, position))
        elif text in ")]}" and brackets:
            brackets.pop()
        yield Token(kind, text, position, closed)
        position += len(text)


def names(sql: str) -> frozenset[str]:
    """Return the names of the placeholders in `sql`, without their colons."""
    return frozenset(token.text[1:] for token in tokens(sql) if token.kind == "placeholder")


def unknown(sql: str, allowed: tuple[str, ...] = KNOWN) -> tuple[Unknown, ...]:
    """Return each placeholder whose name is not allowed, once, where it first stands."""
    seen: dict[str, Unknown] = {}
    for token in tokens(sql):
        name = token.text[1:]
        if token.kind == "placeholder" and name not in allowed and name not in seen:
            near = get_close_matches(name.lower(), allowed, n=1)
            seen[name] = Unknown(name, line_of(sql, token.start), near[0] if near else None)
    return tuple(seen.values())


def bind(sql: str, replacements: Mapping[str, str]) -> str:
    """Return `sql` with each placeholder replaced by its expression, and every other character as it was.

    Raises KeyError when a placeholder has no replacement: `unknown` finds those first.
    """
    return "".join(replacements[token.text[1:]] if token.kind == "placeholder" else token.text for token in tokens(sql))


def statements(sql: str) -> list[str]:
    """Return the statements of `sql` without their semicolons; those that hold only space or comments are dropped."""
    pieces: list[list[Token]] = [[]]
    for token in tokens(sql):
        if token.kind == "symbol" and token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [
        "".join(token.text for token in piece).strip()
        for piece in pieces
        if any(token.kind not in _SILENT for token in piece)
    ]


def strip(sql: str) -> str:
    """Return `sql` without the space, comments and semicolons around it, so that it can stand in brackets."""
    loud = [token for token in tokens(sql) if token.kind not in _SILENT and token.text != ";"]
    return sql[loud[0].start : loud[-1].end] if loud else ""


def main_verb(sql: str) -> str:
    """Return, in capitals, the word that says what the statement does; empty when it has none.

    Brackets around the whole are looked through. For WITH it is the verb behind the common table expressions, or the
    first verb inside them that writes.
    """
    loud = [token for token in tokens(sql) if token.kind not in _SILENT]
    while loud and loud[0].text == "(":
        loud.pop(0)
    if not loud or loud[0].kind != "word":
        return ""
    first = loud[0].text.upper()
    return _verb_behind_with(loud) if first == "WITH" else first


def flaw(sql: str) -> str | None:
    """Say what keeps `sql` from standing in brackets: an open quote or comment, or brackets that do not pair."""
    depth = 0
    for token in tokens(sql):
        if not token.closed:
            what = "comment" if token.kind == "comment" else "quote"
            return f"the {what} that begins on line {line_of(sql, token.start)} never ends"
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            return f"the closing bracket on line {line_of(sql, token.start)} has no opening one"
    return "an opening bracket has no closing one" if depth else None


def line_of(sql: str, offset: int) -> int:
    """Return the 1-based line of an offset."""
    return sql.count("\n", 0, offset) + 1


def _block_comment(sql: str, start: int) -> tuple[str, bool]:
    """Return the comment that begins at `start`; comments nest, as the SQL standard has it."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return sql[start : edge.end()], True
    return sql[start:], False


def _dollar_quote(sql: str, start: int, tag: str) -> tuple[str, bool]:
    end = sql.find(tag, start + len(tag))
    return (sql[start : end + len(tag)], True) if end >= 0 else (sql[start:], False)


def _is_joined(sql: str, colon: int) -> bool:
    """Whether something that a slice, alias or cast belongs to ends right before the colon."""
    before = sql[colon - 1 : colon]
    return before.isalnum() or (before != "" and before in "_$)]'\":")


def _is_subscript(sql: str, bracket: int) -> bool:
    """Whether a `[` picks from the value before it, rather than opening a list."""
    before = sql[bracket - 1 : bracket]
    if before.isalnum() or (before != "" and before in '_$)]"'):
        return not re.search(r"(?i)\barray$", sql[max(0, bracket - 6) : bracket])
    return False


def _verb_behind_with(loud: list[Token]) -> str:
    """Return the first verb that writes inside the expressions, else the verb behind them; empty when there is none."""
    depth, behind = 0, False
    for index, token in enumerate(loud):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        before = loud[index - 1].text if index else ""
        word = token.text.upper() if token.kind == "word" else ""
        if word in _WRITING_VERBS and before == "(" and loud[index - 2].text.upper() in ("AS", "MATERIALIZED"):
            return word
        if behind and token.text == "(" and before == ")":
            return main_verb("".join(f"{each.text} " for each in loud[index:]))
        # A word behind a comma is the name of the next expression, also when it reads like a verb.
        if behind and depth == 0 and word in _VERBS and before != ",":
            return word
        behind = behind or (depth == 0 and token.text == ")")
    return ""
