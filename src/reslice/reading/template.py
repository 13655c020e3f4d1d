"""The parts of a Jinja template: text, values, conditions, loops and assignments, each with its place in the file.

Only the template's own marks are read here; what a value or a condition says is for `reslice.reading.jinja`. A template
that is not well formed is read as far as it goes: an end that is missing is at the end of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPEN = re.compile(r"\{\{|\{%|\{#")
_RAW_END = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_STEP = re.compile(rf"{_STRING}|[{{}}]|%\}}", re.DOTALL)
_SET = re.compile(r"set\s+([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*(=(?!=)\s*(.*))?", re.DOTALL)
_FOR = re.compile(r"for\s+([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s+in\s+(.*)", re.DOTALL)
_SKIPPED = frozenset({"macro", "call", "test", "materialization", "docs", "block"})
"""Blocks whose text is no part of the query: what they hold is called, or is about something else."""
_DEPTH_LIMIT = 60


@dataclass(slots=True)
class Text:
    """Characters of the file that stand for themselves."""

    start: int
    end: int


@dataclass(slots=True)
class Value:
    """An expression whose value is written; one that is not (`do`) is `silent`."""

    start: int
    end: int
    expression: str
    silent: bool = False


@dataclass(slots=True)
class If:
    """Branches in order, each with the tag's words, its condition (empty: else) and its parts."""

    branches: list[tuple[str, str, list[Part]]] = field(default_factory=list)


@dataclass(slots=True)
class For:
    """A loop: the tag's words, the names it sets, what it goes through, and its parts."""

    tag: str
    names: tuple[str, ...]
    through: str
    body: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class Set:
    """An assignment of an expression, or, where there is none, of what its parts write."""

    names: tuple[str, ...]
    expression: str | None
    body: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class Other:
    """A block of another kind, such as a macro; `is_part` says whether what it holds is part of the text."""

    word: str
    is_part: bool
    body: list[Part] = field(default_factory=list)


Part = Text | Value | If | For | Set | Other


def parts_of(text: str) -> list[Part]:
    """Return the parts of a template, in order."""
    root: list[Part] = []
    stack: list[tuple[str, Part, list[Part]]] = []
    for start, end, kind in _pieces(text):
        here = stack[-1][2] if stack else root
        if kind == "text":
            here.append(Text(start, end))
        elif kind == "value":
            here.append(Value(start, end, _inside(text[start:end], "}}")))
        else:
            _tag(_inside(text[start:end], "%}"), (start, end), here, stack)
    return root


def _tag(words: str, span: tuple[int, int], here: list[Part], stack: list[tuple[str, Part, list[Part]]]) -> None:
    word = words.split(maxsplit=1)[0] if words else ""
    if word.startswith("end"):
        _close(word[3:], stack)
    elif word in ("else", "elif"):
        _branch(word, words, stack)
    elif word == "do":
        here.append(Value(*span, words[2:].strip(), silent=True))
    elif len(stack) < _DEPTH_LIMIT:
        part = _opened(word, words)
        if part is None:
            return
        here.append(part)
        if isinstance(part, If):
            stack.append((word, part, part.branches[0][2]))
        elif not (isinstance(part, Set) and part.expression is not None):
            stack.append((word, part, part.body))


def _opened(word: str, words: str) -> If | For | Set | Other | None:
    """Return the part that a tag begins; None for one that stands alone."""
    if word == "if":
        return If([(words, words[2:].strip(), [])])
    if word == "for":
        loop = _FOR.fullmatch(words)
        return For(words, _names(loop[1]), loop[2].strip()) if loop is not None else Other(word, True)
    if word == "set":
        found = _SET.fullmatch(words)
        return Set(_names(found[1]), found[3].strip() if found[2] else None) if found is not None else None
    if word in _SKIPPED:
        return Other(word, False)
    return Other(word, True) if word in ("snapshot", "filter") else None


def _close(word: str, stack: list[tuple[str, Part, list[Part]]]) -> None:
    """Close the innermost block of a kind, and those within it whose end is missing."""
    for place in range(len(stack) - 1, -1, -1):
        if stack[place][0] == word:
            del stack[place:]
            return


def _branch(word: str, words: str, stack: list[tuple[str, Part, list[Part]]]) -> None:
    if not stack or not isinstance(stack[-1][1], If):
        return
    condition = stack[-1][1]
    body: list[Part] = []
    condition.branches.append((words, words[4:].strip() if word == "elif" else "", body))
    stack[-1] = ("if", condition, body)


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))


def _inside(whole: str, end: str) -> str:
    """Return what stands between a tag's marks."""
    return whole[2:].removesuffix(end).removeprefix("-").removeprefix("+").rstrip("-+").strip()


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each text, value and tag begins and ends; comments are left out."""
    at = 0
    while at < len(text):
        opened = _OPEN.search(text, at)
        if opened is None:
            yield at, len(text), "text"
            return
        start = opened.start()
        if start > at:
            yield at, start, "text"
        if opened[0] == "{#":
            end = text.find("#}", start)
            at = len(text) if end < 0 else end + 2
            continue
        at = _end(text, start + 2, "}}" if opened[0] == "{{" else "%}")
        if opened[0] == "{{":
            yield start, at, "value"
        elif _inside(text[start:at], "%}") == "raw":
            close = _RAW_END.search(text, at)
            yield at, close.start() if close is not None else len(text), "text"
            at = close.end() if close is not None else len(text)
        else:
            yield start, at, "tag"


def _end(text: str, at: int, close: str) -> int:
    """Return where a value or a tag ends: at its closing mark outside strings and braces, else at the first one."""
    depth = 0
    for found in _STEP.finditer(text, at):
        if depth == 0 and text.startswith(close, found.start()):
            return found.start() + 2
        if found[0] in "{}":
            depth = max(0, depth + (1 if found[0] == "{" else -1))
    first = text.find(close, at)
    return len(text) if first < 0 else first + 2
