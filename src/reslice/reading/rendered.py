"""A dbt template as the text that it writes, piece by piece, each with its place in the file. Nothing of it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reslice.reading import macros
from reslice.reading.jinja import UNKNOWN, Outside, Reader, Reference, Sql, known, plain
from reslice.reading.template import For, If, Other, Part, Set, Text, Value, parts_of

_LOOP_LIMIT = 200
_PIECE_LIMIT = 20_000
_SILENT = frozenset({"log", "print", "return", "debug"})


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is written, and the span of the file that it comes from.

    `value` is None for text of the file itself; else what an expression gave: text, a Reference, or UNKNOWN, whose
    `text` then is the expression as it is written.
    """

    text: str
    start: int
    end: int
    value: object = None


@dataclass(frozen=True, slots=True)
class Configured:
    """One call of `config`: where it is, its values, and whether some of them are hidden in `**`."""

    span: tuple[int, int]
    values: Mapping[str, object]
    is_hidden: bool


@dataclass(slots=True)
class Rendered:
    """What a template writes and says."""

    pieces: list[Piece] = field(default_factory=list)
    configured: list[Configured] = field(default_factory=list)
    references: list[tuple[tuple[int, int], Reference]] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    """The dotted names of what is called."""


def rendered(text: str, *, is_incremental: bool = True, variables: Mapping[str, object] | None = None) -> Rendered:
    """Return what a template writes in an incremental run or the first one; `variables` are the project's defaults."""
    writer = _Writer(text, is_incremental, variables or {})
    writer.write(parts_of(text))
    return writer.found


class _Writer:
    """Goes through the parts of a template in order."""

    def __init__(self, text: str, is_incremental: bool, variables: Mapping[str, object]) -> None:
        self.text = text
        self.is_incremental = is_incremental
        self.variables = variables
        self.found = Rendered()
        self.span = (0, 0)
        self.scope: dict[str, object] = {"execute": True}
        if is_incremental:
            self.scope["flags"] = {"FULL_REFRESH": False}
        self.reader = Reader(self.scope, self.call)

    def write(self, parts: list[Part]) -> None:
        for part in parts:
            if len(self.found.pieces) > _PIECE_LIMIT:
                return
            if isinstance(part, Text):
                self.found.pieces.append(Piece(self.text[part.start : part.end], part.start, part.end))
            elif isinstance(part, Value):
                self.value(part)
            elif isinstance(part, If):
                self.condition(part)
            elif isinstance(part, For):
                self.loop(part)
            elif isinstance(part, Set):
                self.assign(part)
            elif isinstance(part, Other) and part.is_part:
                self.write(part.body)

    def value(self, part: Value) -> None:
        self.span = (part.start, part.end)
        value = self.reader.value(part.expression)
        if part.silent:
            return
        if isinstance(value, _Captured):
            self.found.pieces += value.pieces
        elif isinstance(value, Sql | str) or (isinstance(value, int | float) and not isinstance(value, bool)):
            text = value.text if isinstance(value, Sql) else str(value)
            self.found.pieces.append(Piece(text, *self.span, text))
        elif isinstance(value, Reference):
            self.found.pieces.append(Piece(self.text[part.start : part.end], *self.span, value))
        else:
            self.found.pieces.append(Piece(part.expression, *self.span, UNKNOWN))

    def condition(self, part: If) -> None:
        for tag, condition, body in part.branches:
            holds = self.reader.truth(condition) if condition else True
            if holds is None:
                self.found.unsure.append(f"the branch of {{% {tag} %}} was taken, whatever the condition says")
            elif not holds and "target." in condition:
                self.found.unsure.append(f"the branch of {{% {tag} %}} was left out: it is for trying out")
            if holds is not False:
                self.write(body)
                return

    def loop(self, part: For) -> None:
        through = plain(self.reader.value(part.through))
        items = through[:_LOOP_LIMIT] if isinstance(through, list) else None
        if items is None:
            self.found.unsure.append(f"the loop {{% {part.tag} %}} was read once; write out what it makes")
            items = [UNKNOWN]
        before = dict(self.scope)
        for number, item in enumerate(items):
            self._set(part.names, item)
            self.scope["loop"] = {
                "index": number + 1,
                "index0": number,
                "first": number == 0,
                "last": number == len(items) - 1,
                "length": len(items),
            }
            self.write(part.body)
        for name in (*part.names, "loop"):
            self.scope.pop(name, None)
            if name in before:
                self.scope[name] = before[name]

    def assign(self, part: Set) -> None:
        if part.expression is not None:
            self._set(part.names, self.reader.value(part.expression))
            return
        kept = self.found.pieces
        self.found.pieces = []
        self.write(part.body)
        captured, self.found.pieces = self.found.pieces, kept
        self._set(part.names, _Captured(tuple(captured)))

    def _set(self, names: tuple[str, ...], value: object) -> None:
        if len(names) == 1:
            self.scope[names[0]] = value
            return
        values = value if isinstance(value, list) and len(value) == len(names) else [UNKNOWN] * len(names)
        self.scope.update(zip(names, values, strict=True))

    def call(self, name: str, given: list[object], named: dict[str, object], is_hidden: bool) -> object:
        """Return what a call gives: what dbt's own functions say of the template, and otherwise nothing known."""
        self.found.called.add(name)
        if name in ("ref", "source"):
            names = tuple(each for each in map(plain, given) if isinstance(each, str))
            if not names or len(names) != len(given):
                return UNKNOWN
            reference = Reference(name, names)
            self.found.references.append((self.span, reference))
            return reference
        if name == "config":
            values = {str(key): each for first in given if isinstance(first, dict) for key, each in first.items()}
            is_hidden = is_hidden or any(not isinstance(first, dict) for first in given)
            self.found.configured.append(Configured(self.span, values | named, is_hidden))
            return ""
        if name == "is_incremental":
            return self.is_incremental
        if name == "should_full_refresh" and self.is_incremental:
            return False
        if name in ("var", "env_var"):
            return self._variable(name, given, named)
        if name == "range":
            return _range(given)
        if name in _SILENT or name.startswith("exceptions."):
            return ""
        sql = macros.written(name, given, named) if known(given) and known(named) else None
        return UNKNOWN if sql is None else Sql(sql)

    def _variable(self, name: str, given: list[object], named: dict[str, object]) -> Outside:
        default = given[1] if len(given) > 1 else named.get("default", UNKNOWN)
        key = given[0] if given else UNKNOWN
        if name == "var" and isinstance(key, str) and key in self.variables:
            default = self.variables[key]
        return Outside(plain(default))


def _range(given: list[object]) -> object:
    bounds = [each for each in given if isinstance(each, int) and abs(each) <= 100_000]
    if len(bounds) != len(given) or not 1 <= len(bounds) <= 2:
        return UNKNOWN
    return list(range(*bounds))[:_LOOP_LIMIT]


@dataclass(frozen=True, slots=True)
class _Captured:
    """What the parts of an assignment write."""

    pieces: tuple[Piece, ...]
