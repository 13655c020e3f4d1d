"""The variables of a script, which DECLARE and SET give a value, and what its names stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.values import CLOCK, Names, Value, named, value_of
from reslice.reading.marks import MARK


@dataclass(frozen=True, slots=True)
class Variables:
    """What the variables of a script hold, and what its names stand for.

    `held` has each variable by its name in small letters without its sign; None: what it holds cannot be told. `names`
    has marks and declared variables, as conditions are read with them.
    """

    held: Mapping[str, exp.Expr | None]
    names: Names


def assigned(statements: Sequence[exp.Expr], marks: Mapping[str, str]) -> dict[str, exp.Expr | None]:
    """Return what each variable holds, by its name in small letters without its sign.

    None: nothing gives it a value here, or several statements do.
    """
    found: dict[str, exp.Expr | None] = {}
    given: set[str] = set()
    for node in statements:
        for name, value in _given(node):
            key = named(marks.get(name, name)).base
            if value is None:
                found.setdefault(key, None)
            else:
                found[key] = None if key in given else value
                given.add(key)
    return found


def _given(node: exp.Expr) -> Iterator[tuple[str, exp.Expr | None]]:
    """Yield each variable of a statement and what it is given."""
    if isinstance(node, exp.Declare):
        for item in node.expressions:
            names = item.args.get("this")
            default = item.args.get("default")
            for each in names if isinstance(names, list) else [names]:
                if isinstance(each, exp.Expr):
                    yield each.name, default if isinstance(default, exp.Expr) else None
    elif isinstance(node, exp.Set):
        for item in node.expressions:
            pair = item.this if isinstance(item, exp.SetItem) else None
            if isinstance(pair, exp.EQ) and isinstance(pair.this, exp.Column) and not pair.this.table:
                yield pair.this.name, pair.expression
    elif isinstance(node, exp.Select):
        yield from _selected(node)


def _selected(node: exp.Select) -> Iterator[tuple[str, exp.Expr | None]]:
    """Yield the variables that a SELECT fills: `select @last = max(…) from …`, `select max(…) into @last from …`."""
    into = node.args.get("into")
    target = into.this if isinstance(into, exp.Into) else None
    if isinstance(target, exp.Table) and MARK.fullmatch(target.name):
        yield target.name, node
    for each in node.expressions:
        if isinstance(each, exp.Alias) and MARK.fullmatch(each.alias):
            yield each.alias, node if node.args.get("from_") is not None else each.this


def variables_of(statements: Sequence[exp.Expr], marks: Mapping[str, str]) -> Variables:
    """Return the variables of a script, and what its names stand for.

    A variable that is another one moved by days is that value. One that holds a written date or the clock keeps its
    name: it is there to be changed.
    """
    held = assigned(statements, marks)
    declared = [name for node in statements if isinstance(node, exp.Declare) for name, _ in _given(node)]
    own: dict[str, str | Value] = {name.lower(): name for name in declared if not MARK.fullmatch(name)}
    own |= marks
    moved = {name: _moved(value, own) for name, value in held.items() if value is not None}
    names = {key: moved.get(named(text).base) or text if isinstance(text, str) else text for key, text in own.items()}
    return Variables(held, names)


def _moved(value: exp.Expr, own: Names) -> Value | None:
    found = value_of(value, own)
    return found if found is not None and found.base not in ("", CLOCK) and not found.is_nameless else None
