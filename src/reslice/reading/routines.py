"""The statements within a function or a procedure, whose body is one dollar-quoted text, or T-SQL.

PostgreSQL and Snowflake keep the body of a routine as a text, `AS $$ … $$`, and so does a DO block. What stands in it
is SQL with the words of a block around it. Those words are made spaces here, and the rest stays where it is: each
statement of the body stands at its own place in the text that is returned. The function of a trigger is left out: it is
run once for each row that somebody else writes. Of a procedure of T-SQL only the head is made spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BODY = re.compile(r"(?P<tag>\$(?:[A-Za-z_]\w*)?\$)")
_HEAD = re.compile(
    r"(?is)(?:\A|;|\n)\s*(?P<head>create\s+(?:or\s+(?:replace|alter)\s+)?(?:\w+\s+){0,3}?(?:function|procedure)\b[^;]*\bas"
    r"|do(?:\s+language\s+\w+)?)\s*\Z"
)
_HEAD_MAX = 4000
_TAIL = re.compile(r"[^;$]{0,500};?")
_NAMED = re.compile(
    r'(?is)create\s+(?:\w+\s+){0,5}?(?:function|procedure)\s+(?:if\s+not\s+exists\s+)?(?:[\w$"]+\s*\.\s*)*"?(?P<name>[\w$]+)'
)
_LANGUAGE = re.compile(r"(?i)\blanguage\s+'?(\w+)")
_READ = frozenset({"sql", "plpgsql"})
_TRIGGER = re.compile(r"(?i)\breturns\s+(?:event_)?trigger\b")
_TSQL = frozenset({"tsql", "fabric"})
_HEAD_OF_TSQL = re.compile(
    r"(?is)\b(?:create(?:\s+or\s+alter)?|alter)\s+proc(?:edure)?\s+[\w.\[\]\"#]+"
    r"(?:--[^\n]*|/\*.*?\*/|@\w+\s+as\b|\bexec(?:ute)?\s+as\b|[^;])*?"
    r"\bas\b(?:\s+begin\b(?!\s+(?:tran|try|catch|distributed|atomic)))?"
)
"""From the first word of a procedure up to its first statement; a parameter and whose rights it has may have an AS."""
_ATOMIC = frozenset({"postgres", "duckdb", "redshift", "materialize", "risingwave"})
"""Dialects in which all that a routine does is one transaction; DuckDB is what a file without a name is tried as."""
_BEGIN = "BEGIN;"
_ROOM = re.compile(r"(?s)([^ ]*) (\s*?) {3}(\s*?) (\s*)")
"""Spaces in which the end of a transaction has room, whatever lines they are on."""

_TOKEN = re.compile(r"(?is)'[^']*'|--[^\n]*|/\*.*?\*/|(?P<word>[a-z_][\w$]*)|(?P<assign>:=)|(?P<other>[^\s\w])|\w+")
_TO_THEN = frozenset({"if", "elsif", "elseif", "when"})
_TO_LOOP = frozenset({"for", "while", "foreach"})
_ALONE = frozenset({"else", "exception", "loop"})
_TO_END = frozenset(
    {"end", "raise", "return", "perform", "get", "exit", "continue", "let", "open", "close", "fetch", "null"}
)
_OF_TRANSACTION = frozenset({"transaction", "work", "tran", ";"})


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine or a block, and where it, its body, and what stands behind its body are in the text."""

    begin: int
    body: int
    tail: int
    end: int
    head: str


def routines(text: str) -> Iterator[Routine]:
    """Yield the routines whose body is SQL in dollar quotes, in order."""
    at = 0
    while (tag := _BODY.search(text, at)) is not None:
        end = text.find(tag[0], tag.end())
        if end < 0:
            return
        head = _HEAD.search(text[max(at, tag.start() - _HEAD_MAX) : tag.start()])
        tail = _TAIL.match(text, end + len(tag[0]))
        stop = end + len(tag[0]) if tail is None else tail.end()
        said = None if head is None else _LANGUAGE.search(head["head"]) or _LANGUAGE.search(text[end:stop])
        if head is None or (said is not None and said[1].lower() not in _READ):
            at = end + len(tag[0])
            continue
        begin = tag.start() - len(head[0]) + head.start("head") - head.start()
        yield Routine(begin, tag.end(), end, stop, head["head"])
        at = stop


def only_defined(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each function and procedure that the text makes and does not call: its name, and where its body is."""
    for each in routines(text):
        named = _NAMED.match(each.head)
        if named is None:  # a DO block is run
            continue
        call = re.compile(rf"(?i)\b{re.escape(named['name'])}\"?\s*\(")
        if not call.search(text, 0, each.begin) and not call.search(text, each.end):
            yield named["name"], each.body, each.tail


def is_procedure_of_tsql(text: str) -> bool:
    """Whether a text begins with the head of a procedure as T-SQL writes it."""
    return _HEAD_OF_TSQL.match(text.lstrip()) is not None


def opened(text: str, dialect: str) -> str:
    """Return a text of the same length in which the bodies of routines stand as statements."""
    if dialect in _TSQL:
        return _HEAD_OF_TSQL.sub(lambda found: _blank(found[0]), text)
    parts: list[str] = []
    at = 0
    for each in routines(text):
        is_trigger = _TRIGGER.search(each.head) is not None
        routine = text[each.begin : each.body], text[each.body : each.tail], text[each.tail : each.end]
        parts.append(text[at : each.begin])
        parts.append(_blank("".join(routine)) if is_trigger else _routine(*routine, dialect))
        at = each.end
    return "".join([*parts, text[at:]])


def _routine(head: str, body: str, tail: str, dialect: str) -> str:
    """Return a routine as its statements, in a transaction where the database runs it in one."""
    inner = "".join(_statements(body)) + _blank(tail)
    kept = inner.rstrip()
    room = _ROOM.fullmatch(inner, len(kept))
    if dialect in _ATOMIC and len(head) >= len(_BEGIN) and room is not None:
        return f"{_blank(head[: -len(_BEGIN)])}{_BEGIN}{kept}{room[1]};{room[2]}END{room[3]};{room[4]}"
    return _blank(head[:-1]) + ";" + inner[:-1] + ";"


def _statements(body: str) -> Iterator[str]:
    """Yield a body in parts, without the words of a block, of a branch and of a loop."""
    tokens = [*_TOKEN.finditer(body)]
    at = 0  # what was yielded already
    until: frozenset[str] | None = None  # the words up to which all is left out
    is_start = True
    for place, token in enumerate(tokens):
        word = token[0].lower()
        if token[0].startswith(("--", "/*", "'")):
            continue
        if until is not None:
            if word in until:
                yield _blank(body[at : token.end()])
                at, until, is_start = token.end(), None, True
            continue
        if not is_start:
            is_start = word == ";"
            continue
        after = tokens[place + 1][0].lower() if place + 1 < len(tokens) else ""
        until = _left_out(word, after)
        is_alone = word in _ALONE or (word == "begin" and after not in _OF_TRANSACTION)
        if until is None and not is_alone:
            is_start = word == ";"
            continue
        yield body[at : token.start()]
        at = token.start()
        if is_alone:
            yield _blank(token[0])
            at = token.end()
    yield body[at:] if until is None else _blank(body[at:])


def _left_out(word: str, after: str) -> frozenset[str] | None:
    """Return the words up to which a statement of a block is left out; None where it is a statement of SQL."""
    if word == "declare":
        return frozenset({"begin"})
    if word in _TO_THEN:
        return frozenset({"then"})
    if word in _TO_LOOP:
        return frozenset({"loop", "do"})
    if word in _TO_END or after == ":=":
        return frozenset({";"})
    return None


def _blank(text: str) -> str:
    return re.sub(r"\S", " ", text)
