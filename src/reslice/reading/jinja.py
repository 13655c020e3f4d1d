"""What the expressions of a dbt template say without running any: constants, references, conditions that are known.

jinja2 reads each expression; its value is then worked out here from constants alone. What comes from outside (`var`,
`env_var`) is known by its default only, and whatever else is called is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateError

_LIST_LIMIT = 1000
_TEXT_LIMIT = 100_000


class Unknown:
    """The value of what cannot be known by reading."""

    def __repr__(self) -> str:
        """Return its name."""
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Outside:
    """A value that is given when dbt runs; `default` is what it is when nobody gives one, UNKNOWN without one."""

    default: object


@dataclass(frozen=True, slots=True)
class Reference:
    """A table that dbt names: `kind` is ref, source or this."""

    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL that a well-known macro writes."""

    text: str


Caller = Callable[[str, list[object], dict[str, object], bool], object]
"""What a call gives: its dotted name, its values, its named values, and whether others are hidden in `**`."""


@lru_cache(maxsize=4096)
def expression(text: str) -> nodes.Expr | None:
    """Return an expression as jinja2 reads it; None where it cannot."""
    try:
        body = Environment().parse("{{ " + text + " }}").body
    except (TemplateError, RecursionError, ValueError, OverflowError):
        return None
    output = body[0] if len(body) == 1 and isinstance(body[0], nodes.Output) else None
    return output.nodes[0] if output is not None and len(output.nodes) == 1 else None


class Reader:
    """Works out values. `scope` are the names that are set; `call` answers what is called."""

    def __init__(self, scope: Mapping[str, object], call: Caller) -> None:
        self.scope = scope
        self.call = call

    def value(self, text: str) -> object:
        """Return the value of an expression: a constant, Outside, Reference, Sql, or UNKNOWN."""
        node = expression(text)
        try:
            return UNKNOWN if node is None else self.of(node)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return UNKNOWN

    def truth(self, text: str) -> bool | None:
        """Return whether a condition holds; None where it cannot be known."""
        return truth(self.value(text))

    def of(self, node: nodes.Node) -> object:
        """Return the value of a node."""
        method = _BY_KIND.get(type(node))
        return UNKNOWN if method is None else method(self, node)

    def _constant(self, node: Any) -> object:
        return node.value

    def _text(self, node: Any) -> object:
        return node.data

    def _list(self, node: Any) -> object:
        return [self.of(each) for each in node.items]

    def _dict(self, node: Any) -> object:
        return {plain(self.of(pair.key)): self.of(pair.value) for pair in node.items}

    def _name(self, node: Any) -> object:
        if node.name == "this" and "this" not in self.scope:
            return Reference("this", ())
        return self.scope.get(node.name, UNKNOWN)

    def _and(self, node: Any) -> object:
        sides = [truth(self.of(node.left)), truth(self.of(node.right))]
        return False if False in sides else UNKNOWN if None in sides else True

    def _or(self, node: Any) -> object:
        sides = [truth(self.of(node.left)), truth(self.of(node.right))]
        return True if True in sides else UNKNOWN if None in sides else False

    def _not(self, node: Any) -> object:
        found = truth(self.of(node.node))
        return UNKNOWN if found is None else not found

    def _compare(self, node: Any) -> object:
        if len(node.ops) != 1:
            return UNKNOWN
        if _is_target_name(node.expr):
            return self._target(node.ops[0])
        left, right = plain(self.of(node.expr)), plain(self.of(node.ops[0].expr))
        if known(left) and known(right) and node.ops[0].op in _COMPARISONS:
            return _COMPARISONS[node.ops[0].op](left, right)
        return UNKNOWN

    def _target(self, operand: Any) -> object:
        """Return whether a condition on the target's name holds, taking it that the run is no developer's."""
        named = plain(self.of(operand.expr))
        names = named if isinstance(named, list) else [named]
        is_for_trial = all(isinstance(each, str) and each.lower() in _TRIAL_TARGETS for each in names)
        if not is_for_trial or not names:
            return UNKNOWN
        return {"eq": False, "in": False, "ne": True, "notin": True}.get(operand.op, UNKNOWN)

    def _test(self, node: Any) -> object:
        found = plain(self.of(node.node))
        if node.name == "none" and known(found):
            return found is None
        if node.name in ("defined", "undefined") and isinstance(node.node, nodes.Name):
            is_defined = node.node.name in self.scope
            return is_defined if node.name == "defined" else not is_defined
        return UNKNOWN

    def _filter(self, node: Any) -> object:
        found = plain(self.of(node.node)) if node.node is not None else UNKNOWN
        if node.name in ("as_bool", "as_native", "as_number", "as_text", "list"):
            return found
        if not known(found) or isinstance(found, Reference):
            return UNKNOWN
        given = [plain(self.of(each)) for each in node.args]
        if node.name == "join" and isinstance(found, list) and all(isinstance(each, str) for each in found):
            return (given[0] if given and isinstance(given[0], str) else "").join(str(each) for each in found)
        if isinstance(found, str) and node.name in ("upper", "lower", "trim"):
            return {"upper": found.upper, "lower": found.lower, "trim": found.strip}[node.name]()
        if node.name == "length" and isinstance(found, str | list | dict):
            return len(found)
        return found if node.name in ("default", "d") and found is not None else UNKNOWN

    def _concat(self, node: Any) -> object:
        return _joined([self.of(each) for each in node.nodes])

    def _add(self, node: Any) -> object:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) < _LIST_LIMIT:
            return [*left, *right]
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        return _joined([left, right]) if isinstance(left, str) and isinstance(right, str) else UNKNOWN

    def _sub(self, node: Any) -> object:
        left, right = self.of(node.left), self.of(node.right)
        return left - right if isinstance(left, int) and isinstance(right, int) else UNKNOWN

    def _negative(self, node: Any) -> object:
        found = self.of(node.node)
        return -found if isinstance(found, int | float) else UNKNOWN

    def _attribute(self, node: Any) -> object:
        found = self.of(node.node)
        return found.get(node.attr, UNKNOWN) if isinstance(found, dict) else UNKNOWN

    def _item(self, node: Any) -> object:
        found, key = plain(self.of(node.node)), plain(self.of(node.arg))
        if isinstance(found, dict) and isinstance(key, str | int):
            return found.get(key, UNKNOWN)
        if isinstance(found, list | str) and isinstance(key, int) and -len(found) <= key < len(found):
            return found[key]
        return UNKNOWN

    def _either(self, node: Any) -> object:
        found = truth(self.of(node.test))
        if found is None:
            return UNKNOWN
        if found:
            return self.of(node.expr1)
        return "" if node.expr2 is None else self.of(node.expr2)

    def _call(self, node: Any) -> object:
        if isinstance(node.node, nodes.Getattr):
            owner = self.of(node.node.node)
            if isinstance(owner, Reference) and node.node.attr == "render":
                return owner
            if isinstance(owner, dict | list | str) and not node.args and not node.kwargs:
                return _method(owner, node.node.attr)
        name = _dotted(node.node)
        if name is None:
            return UNKNOWN
        given = [self.of(each) for each in node.args]
        named = {each.key: self.of(each.value) for each in node.kwargs}
        return self.call(name, given, named, node.dyn_kwargs is not None or node.dyn_args is not None)


def known(value: object) -> bool:
    """Whether a value, or any value in it, is known."""
    if isinstance(value, list | tuple):
        return all(map(known, value))
    if isinstance(value, dict):
        return all(map(known, value.values()))
    return value is not UNKNOWN


def plain(value: object) -> object:
    """Return a value with every one from outside as its default."""
    if isinstance(value, Outside):
        return plain(value.default)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def truth(value: object) -> bool | None:
    """Return whether a value counts as true; None where it is not known."""
    found = plain(value)
    if isinstance(found, list | dict | str):
        return bool(found)
    return bool(found) if known(found) else None


def _joined(values: list[object]) -> object:
    if any(not isinstance(each, str | int | float) or isinstance(each, bool) for each in values):
        return UNKNOWN
    text = "".join(map(str, values))
    return text if len(text) < _TEXT_LIMIT else UNKNOWN


def _method(owner: dict[Any, object] | list[object] | str, name: str) -> object:
    if isinstance(owner, dict):
        pairs = {"items": [[key, each] for key, each in owner.items()], "keys": [*owner], "values": [*owner.values()]}
        return pairs.get(name, UNKNOWN)
    if isinstance(owner, str) and name in ("upper", "lower", "strip"):
        return {"upper": owner.upper, "lower": owner.lower, "strip": owner.strip}[name]()
    return UNKNOWN


def _dotted(node: nodes.Node) -> str | None:
    words: list[str] = []
    while isinstance(node, nodes.Getattr):
        words.append(node.attr)
        node = node.node
    return ".".join([node.name, *reversed(words)]) if isinstance(node, nodes.Name) else None


def _is_target_name(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Filter) and node.node is not None:
        node = node.node
    return isinstance(node, nodes.Getattr) and _dotted(node) in ("target.name", "target.target_name")


_TRIAL_TARGETS = frozenset({"dev", "develop", "development", "ci", "test", "testing", "local", "sandbox"})
_COMPARISONS: dict[str, Callable[[Any, Any], object]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "lteq": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "gteq": lambda left, right: left >= right,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}
_BY_KIND: dict[type[nodes.Node], Callable[[Reader, Any], object]] = {
    nodes.Const: Reader._constant,
    nodes.TemplateData: Reader._text,
    nodes.List: Reader._list,
    nodes.Tuple: Reader._list,
    nodes.Dict: Reader._dict,
    nodes.Name: Reader._name,
    nodes.And: Reader._and,
    nodes.Or: Reader._or,
    nodes.Not: Reader._not,
    nodes.Compare: Reader._compare,
    nodes.Test: Reader._test,
    nodes.Filter: Reader._filter,
    nodes.Concat: Reader._concat,
    nodes.Add: Reader._add,
    nodes.Sub: Reader._sub,
    nodes.Neg: Reader._negative,
    nodes.Getattr: Reader._attribute,
    nodes.Getitem: Reader._item,
    nodes.CondExpr: Reader._either,
    nodes.Call: Reader._call,
}
