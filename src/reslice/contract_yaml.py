"""A YAML 1.2 file as plain values, with the line and column of everything in it.

Narrower than YAML on purpose: keys are text, a key stands once, and there are no aliases, tags or second documents, so
that a contract means what it looks like and no file can blow up when it is read. Only null, true, false, whole and
decimal numbers are more than text: `no` is text, and a number keeps its exact digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

KeyPath = tuple[str | int, ...]
"""The keys and list positions that lead from the top of the file to a value."""

_DEPTH_LIMIT = 16
_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE_OR_FALSE = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?[0-9]{1,60}")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]{1,60}|[0-9]{1,60}(?:\.[0-9]{0,60})?)(?:[eE][-+]?[0-9]{1,2})?")
_PIECE = re.compile(
    r"""(?<![^\s\[{,:])(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|["'].*)   # text in quotes, or what begins it
    | (?<!\S)(?P<comment>\#.*)
    | .""",
    re.VERBOSE,
)
"""A piece of one line: quoted text whole, a comment whole, and anything else by the character."""
_UNSPEAKABLE = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: where (1-based), at which key, and what was found and expected there."""

    line: int
    column: int
    key: KeyPath
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key and its value begin, each as 1-based line and column; an item of a list has no key of its own."""

    key: tuple[int, int]
    value: tuple[int, int]


@dataclass(slots=True)
class Document:
    """What a file says, where it says it, and what is wrong with it so far."""

    lines: list[str]
    data: Any = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)
    """The keys whose values were given up; their mistakes are already there."""

    def blame(self, key: KeyPath, text: str, *, on_key: bool = False) -> None:
        """Add a mistake at `key`, or at the nearest key around it that the file has.

        A value that could not be read at all is blamed once, not again for what it then lacks.
        """
        if any(key[:length] in self.unread for length in range(len(key) + 1)):
            return
        around = key
        while around and around not in self.places:
            around = around[:-1]
        place = self.places.get(around, Place((1, 1), (1, 1)))
        line, column = place.key if on_key or around != key else place.value
        self.mistakes.append(Mistake(line, column, key, text))

    def text_of(self, line: int) -> str:
        """Return the stripped text of a 1-based line, without the comment behind it."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if "#" not in text:
            return text.strip()
        return "".join(piece[0] for piece in _PIECE.finditer(text) if piece["comment"] is None).strip()


class _Unreadable(Exception):
    """The file stops being YAML, or stops being ours, at a place behind which nothing can be said."""

    def __init__(self, key: KeyPath, place: tuple[int, int], text: str) -> None:
        self.mistake = Mistake(*place, key, text)
        super().__init__(text)


def read(text: str) -> Document:
    """Return the document of `text`; its mistakes are those of YAML itself, `data` is None when there is no value."""
    document = _read(text)
    return replace(document, mistakes=[*document.mistakes], unread={*document.unread})


@lru_cache(maxsize=2)
def _read(text: str) -> Document:
    """Return the document of a text, which is not changed by anybody: a project is opened again and again."""
    document = Document(_LINE_BREAK.split(text))
    try:
        _Reader(document, _events(text)).document()
    except _Unreadable as stop:
        document.data = None
        document.mistakes.append(stop.mistake)
    return document


def _events(text: str) -> Iterator[Event]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        # Only the problem is repeated: the snippet that ruamel adds could hold a password.
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        raise _Unreadable((), place, f"not YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError, ArithmeticError, LookupError, AssertionError, AttributeError, TypeError) as error:
        position = getattr(error, "position", 0)
        before = _LINE_BREAK.split(text[:position]) if isinstance(position, int) else [""]
        place = (len(before), len(before[-1]) + 1)
        raise _Unreadable((), place, "not YAML: a character that YAML does not allow") from None


class _Reader:
    """Turns events into values, noting places and mistakes as it goes."""

    def __init__(self, document: Document, events: Iterator[Event]) -> None:
        self.found = document
        self.events = events

    def document(self) -> None:
        starts = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                starts += 1
                if starts > 1:
                    raise _Unreadable((), _place(event), "a second document begins here; a contract file holds one")
                event = next(self.events)
                self.found.places[()] = Place(_place(event), _place(event))
                self.found.data = self.value(event, ())

    def value(self, event: Event, key: KeyPath) -> Any:
        if len(key) > _DEPTH_LIMIT:
            raise _Unreadable(key[:4], _place(event), f"nested more than {_DEPTH_LIMIT} levels deep")
        if isinstance(event, AliasEvent):
            return self.unread(key, event, "a YAML alias; write the value out")
        if getattr(event, "anchor", None) is not None:
            self.unread(key, event, "a YAML anchor; write the value out where it is used")
        if _has_tag(event):
            self.unread(key, event, "a YAML tag; quote the value if it is text")
        if isinstance(event, MappingStartEvent):
            return self.mapping(key)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(key)
        assert isinstance(event, ScalarEvent), "a value is an alias, a mapping, a sequence or a scalar"
        if _UNSPEAKABLE.search(event.value):
            return self.unread(key, event, "a NUL or half a character")
        return _scalar(event)

    def mapping(self, key: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            name = self.name(event, key)
            after = next(self.events)
            if name is None:
                self.skip(after, key)
            elif name in values:
                first = self.found.places[(*key, name)].key[0]
                text = f"the same key again; the first one is on line {first}"
                self.found.mistakes.append(Mistake(*_place(event), (*key, name), text))
                self.skip(after, key)
            else:
                # An empty value has no place of its own: YAML puts it before whatever comes next.
                place = _place(event) if _is_empty(after) else _place(after)
                self.found.places[(*key, name)] = Place(_place(event), place)
                values[name] = self.value(after, (*key, name))
        return values

    def name(self, event: Event, key: KeyPath) -> str | None:
        """Return the text of a key, or None when it is none."""
        if not isinstance(event, ScalarEvent) or _has_tag(event) or event.anchor is not None:
            mistake = "a key must be plain text"
        else:
            text = str(event.value)
            if not text or _UNSPEAKABLE.search(text):
                mistake = "a key must not be empty or hold a NUL or half a character"
            elif not isinstance(_scalar(event), str):
                mistake = f'a key must be text; write "{text}" with quotes'
            else:
                return text
        self.found.mistakes.append(Mistake(*_place(event), key, mistake))
        if not isinstance(event, ScalarEvent):
            self.skip(event, key)
        return None

    def sequence(self, key: KeyPath) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            item = (*key, len(values))
            self.found.places[item] = Place(_place(event), _place(event))
            values.append(self.value(event, item))
        return values

    def unread(self, key: KeyPath, event: Event, text: str) -> None:
        self.found.unread.add(key)
        self.found.mistakes.append(Mistake(*_place(event), key, f"found {text}"))

    def skip(self, event: Event, key: KeyPath) -> None:
        """Read past a value that nothing will use; what is wrong inside it is not worth a line."""
        aside = _Reader(Document([]), self.events)
        aside.value(event, (*key, "?"))


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _is_empty(event: Event) -> bool:
    return isinstance(event, ScalarEvent) and event.value == "" and not event.style


def _has_tag(event: Event) -> bool:
    return getattr(event, "tag", None) is not None


def _scalar(event: ScalarEvent) -> Any:
    """Return the value of a scalar by the core rules of YAML 1.2, decimals exactly as written."""
    text = str(event.value)
    if event.style:
        return text
    if text in _NULL:
        return None
    if text in _TRUE_OR_FALSE:
        return _TRUE_OR_FALSE[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text
