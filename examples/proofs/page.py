"""The page of the proofs, docs/proofs.md, made from what results.json holds."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from examples.proofs.cases import CASES, RANGE, Case
from examples.proofs.proof import FAILED, Result
from examples.proofs.results import Results
from examples.proofs.setups import ENGINES, PROOFS, ROOT, SCRATCH, Setup, setups

PAGE = ROOT / "docs" / "proofs.md"

WAYS = {
    "append": "append",
    "delete_insert": "delete and insert, one transaction",
    "upsert": "upsert",
    "accumulating_upsert": "upsert that adds",
    "insert_missing": "insert what is missing",
    "merge": "merge",
    "delete_insert_by_key": "delete+insert by key",
    "delete_insert_by_date": "delete+insert by date",
    "microbatch": "microbatch",
    "by_time_range": "by time range",
    "by_unique_key": "by unique key",
    "by_key": "merge by primary key",
    "by_merge_key": "merge by merge key",
    "by_scope": "merge by scope",
    "replace_slice": "replace_slice",
}

INTRODUCTION = """\
# Proofs

Made by `make proofs` from `examples/proofs/results.json`; not edited by hand.

Whether a job may be run again can be asked of the job itself. [`reslice prove`](prove.md) runs it twice in a copy
of the database and gives two answers: is the table after run 2 as run 1 left it (**repeatable**), and is it what
its source gives (**equal**)? Below, the ordinary set-ups of other tools, and SQL and Python as they are written by
hand, are asked that on the rows of [the comparison](comparison.md). There the tools were looked at from outside, in
more cases; here one command is the judge, and `make proofs` asks it again.

It is about these versions on these rows, and no judgement of a tool: much of it is documented, and right for other
jobs.
"""

STARTED = """\
Each proof starts from a fresh database with ten orders and a filled target: 8 rows, 10 orders, 56500 cents. SQLMesh
and dlt have filled it themselves. The source changes as the case says; then the command that runs the day again is
proved, with `--range {range}`: the whole target is compared with its source. The contract allows
NULL as a channel.
"""

ANSWERS = """\
## The answers

Repeatable / equal. *Untouched*: the command wrote nothing, so that run 2 had nothing to double. *Exit code*: it ended
with an error, and there is nothing to compare.
"""

TYPED = """\
## The commands

The jobs are in [examples/proofs](../examples/proofs/). This is typed for C2 at the top of the repository. RESLICE_URL
names the database of the shop, and `reslice prove` gives each command that of its copy. No tool needs the network, and
none leaves a file in the tree with the variables that `quiet` in
[databases.py](../examples/proofs/databases.py) sets.
"""

REASONS = """\
## Why

- **append** adds the day once more, whatever is there. Where the day has no rows any more (C8) it adds nothing, and the
  old rows stay. **An upsert that adds** is the same in another dress: there are as many rows as before, and every
  figure grows.
- **What goes by keys** (upsert, merge, delete+insert by key, dlt's primary key, and dbt's microbatch on PostgreSQL,
  which is a merge) touches the groups that came back. A group that is gone is not among them and stays (C2, C8). A NULL
  is equal to no NULL, so that its group is added by every run (C9); dlt's primary key refuses it.
- **What goes by the days that came back** (dbt's delete+insert by date, dlt's merge key) removes a group that is gone,
  until the whole day is: then no day came back, and the old one stays (C8).
- **What goes by the range** (delete and insert by hand, dbt's microbatch on DuckDB, SQLMesh by time range, reslice)
  removes what is gone. dlt's scope is a condition that a load deletes by, and it does so too; but without a row there
  is no load, and nothing is deleted (C8).
- **An insert of what is missing** never corrects a row. It mostly writes nothing, which looks like a job that repeats;
  in C3 even its totals are those of the source, with a wrong row on both days.
- **In C8** the empty day is equal to its source, and whoever empties it is right by these two questions. reslice holds
  such a run until a person consents, exit code 3: a source that is empty by accident looks the same.
- **In C3** the job repeats well, and another day is wrong. Only what computes all of history again is right: SQLMesh by
  unique key. `reslice status` over the month names the day, and with `affected` in the contract the run does.

## What two runs do not show

What becomes of the table when the job is killed, or runs twice at the same time: `reslice prove --crash` and
`--at-once` ask that.
"""


def in_words(result: Result) -> str:
    """Return the verdict with the target's figures before and after each run."""
    if result.verdict == FAILED:
        return f"{FAILED}: exit code {result.exit_code}"
    return f"{result.verdict}: {' → '.join(_figures(each) for each in result.totals)}"


def text(results: Results) -> str:
    """Return the whole page."""
    cases = [part for case in CASES for part in _case(results, case)]
    return "\n".join([INTRODUCTION, *_measured(results), ANSWERS, summary(results), *cases, REASONS, *_commands()])


def summary(results: Results) -> str:
    """Return the table of answers: one line a set-up, engines together where all their answers are the same."""
    lines = [f"| set-up | on | {' | '.join(case.name for case in CASES)} |", f"|---|---|{'---|' * len(CASES)}"]
    for (tool, way), engines in _ways(results):
        for shown, found in _together(engines, _pairs):
            lines.append(f"| {_name(tool, way)} | {shown} | {' | '.join(_pairs(found))} |")
    return "\n".join([*lines, ""])


def _pairs(found: Found) -> tuple[str, ...]:
    """Return both answers in each case."""
    return tuple(_pair(found[case.name]) if case.name in found else "" for case in CASES)


def _pair(result: Result) -> str:
    if result.verdict == FAILED:
        return f"exit code {result.exit_code}"
    return f"{_answer(result.repeatable)} / {_answer(result.equals_source)}"


def _measured(results: Results) -> Iterator[str]:
    yield "## How it was measured"
    yield ""
    yield f"{results.day}, with what `make proofs` installs, each tool in an environment of its own:"
    yield ""
    names = {"own": "by hand, and the judge", "dbt": "dbt", "sqlmesh": "SQLMesh", "dlt": "dlt"}
    known = {name: told for name, told in names.items() if name in results.versions}
    yield from (f"- {told}: {_versions(results.versions[name])}" for name, told in known.items())
    yield ""
    yield STARTED.format(range=RANGE)


def _case(results: Results, case: Case) -> Iterator[str]:
    yield f"## {case.name}"
    yield ""
    yield f"{case.title}. Right: {_figures(case.right)} (rows / orders / cents of the whole target)."
    yield ""
    yield "| set-up | on | repeatable | equal | after run 1 | after run 2 | beside the source |"
    yield "|---|---|---|---|---|---|---|"
    for (tool, way), engines in _ways(results):

        def told(found: Found) -> tuple[str, ...]:
            return tuple(_cells(found[case.name], case))

        for shown, found in _together({name: each for name, each in engines.items() if case.name in each}, told):
            yield f"| {_name(tool, way)} | {shown} | {' | '.join(told(found))} |"
    yield ""


def _cells(result: Result, case: Case) -> Iterator[str]:
    if result.verdict == FAILED:
        yield from ("", "", f"exit code {result.exit_code}", "", "")
        return
    yield _answer(result.repeatable)
    yield _answer(result.equals_source)
    for totals in result.totals[1:]:
        yield _figures(totals) if totals == case.right else f"**{_figures(totals)}**"
    yield ", ".join(f"{count} {kind}" for kind, count in result.counts.get("source", {}).items())


def _answer(value: bool | None) -> str:
    return {True: "yes", False: "**no**", None: "untouched"}[value]


def _figures(totals: tuple[int, int, int]) -> str:
    return " / ".join(map(str, totals))


Found = dict[str, Result]
"""The results of one set-up on one engine, by case."""


def _ways(results: Results) -> Iterator[tuple[tuple[str, str], dict[str, Found]]]:
    """Yield each way of each tool with its results per engine; dbt's two adapters are one tool."""
    for key, group in groupby(sorted(results.proofs, key=_place), key=lambda each: (_tool(each.tool), each.way)):
        engines: dict[str, Found] = {}
        for each in group:
            engines.setdefault(each.engine, {})[each.case] = each
        yield key, engines


def _place(result: Result) -> int:
    order = list(dict.fromkeys((_tool(each.tool), each.way) for each in setups()))
    return order.index((_tool(result.tool), result.way))


def _together(engines: dict[str, Found], told: Callable[[Found], object]) -> Iterator[tuple[str, Found]]:
    """Yield engines of which the same is told together."""
    lines: list[tuple[list[str], Found]] = []
    for engine, found in engines.items():
        same = next((names for names, other in lines if told(other) == told(found)), None)
        if same is None:
            lines.append(([ENGINES[engine]], found))
        else:
            same.append(ENGINES[engine])
    yield from ((", ".join(names), found) for names, found in lines)


def _tool(name: str) -> str:
    return "dbt" if name.startswith("dbt-") else name


def _name(tool: str, way: str) -> str:
    return f"{tool}: {WAYS[way]}"


def _versions(found: Mapping[str, str]) -> str:
    names = {"duckdb": "DuckDB", "sqlmesh": "SQLMesh"}
    return ", ".join(f"{names.get(name, name)} {version}" for name, version in found.items())


def _commands() -> Iterator[str]:
    case = next(each for each in CASES if each.name == "C2")
    yield TYPED
    yield "```sh"
    yield f"alias prove='reslice --config {PROOFS}/project/reslice.yml prove daily_orders --range {RANGE}'"
    for setup in _shown():
        words = [_as_typed(word) for word in setup.again(case)]
        yield f"prove {'' if words[0] == '--sql' else '-- '}{shlex.join(words)}"
    yield "```"
    yield ""


def _shown() -> Iterator[Setup]:
    """Yield one set-up of each tool and engine."""
    known = set()
    for each in setups():
        if each.tool not in known and each.way != "append":
            known.add(each.tool)
            yield each


def _as_typed(word: str) -> str:
    """Return a word as a person would type it."""
    path = Path(word)
    if path.parent == Path(sys.executable).parent:
        return "python" if word == sys.executable else path.name
    return word.replace(SCRATCH, "/tmp/shop")
