"""A rule: what it says of a write, and the page a user reads about it, which is its module's docstring.

A module of `reslice.audit.rules` is one rule. Its docstring is its page:

    RS101: An aggregate is appended.

    Why it cannot be run again, in a few paragraphs.

    Bad (postgres):

        insert into daily_orders select order_date, count(*) from orders group by 1

    Good (postgres):

        …

Its functions say what it judges: `write(write)` one write of a table, from SQL, dbt or Python alike; `query(write)` the
query of a write; `script(script)` the statements of a file in order; `model(model)` a dbt model; `module(module)` a
Python file; `suppression(suppression)` a comment that suppresses findings. Each yields what it found. `HELP` is what to
do about it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from reslice.audit.finding import Sort

SUBJECTS = ("write", "script", "model", "module", "suppression")
_TITLE = re.compile(r"(RS\d{3}): (.+)")
_EXAMPLE = re.compile(r"(Bad|Good) \(([\w.]+)\):")


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule says of a span of the file, both ends as offsets; the end is not included.

    `code` and `help` are the rule's where they are empty.
    """

    span: tuple[int, int]
    detail: str
    sort: Sort = Sort.FINDING
    help: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a rule's page. `kind` is a SQL dialect, `dbt` or `python`."""

    is_bad: bool
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with its page. `checks` holds its function for each subject that it judges."""

    code: str
    title: str
    why: str
    examples: tuple[Example, ...]
    help: str
    checks: dict[str, Callable[[Any], Iterator[Found]]]


@cache
def rules() -> dict[str, Rule]:
    """Return every rule by its code, in the order of the codes."""
    package = importlib.import_module("reslice.audit.rules")
    found = [
        _rule(importlib.import_module(f"{package.__name__}.{each.name}"))
        for each in pkgutil.iter_modules(package.__path__)
    ]
    by_code = {rule.code: rule for rule in sorted(found, key=lambda each: each.code)}
    assert len(by_code) == len(found), "two rules share a code"
    return by_code


def _rule(module: ModuleType) -> Rule:
    page = (module.__doc__ or "").strip()
    first, _, rest = page.partition("\n")
    title = _TITLE.fullmatch(first.strip().removesuffix("."))
    assert title is not None, f"{module.__name__} does not begin with its code and title"
    why, examples = _page(rest)
    checks = {name: getattr(module, name) for name in SUBJECTS if hasattr(module, name)}
    return Rule(title[1], title[2], why, examples, str(module.HELP), checks)


def _page(text: str) -> tuple[str, tuple[Example, ...]]:
    """Return the words of a page before its examples, and the examples."""
    why: list[str] = []
    examples: list[Example] = []
    kind: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "Bad (end):"]:
        begins = _EXAMPLE.fullmatch(line.strip())
        if begins is None:
            (why if kind is None else lines).append(line)
            continue
        if kind is not None:
            text_lines = [each[4:] if each.startswith("    ") else each for each in lines]
            examples.append(Example(kind[1] == "Bad", kind[2], "\n".join(text_lines).strip("\n") + "\n"))
        kind, lines = begins, []
    return "\n".join(why).strip(), tuple(examples)
