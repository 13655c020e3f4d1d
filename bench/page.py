"""The benchmark's page, docs/performance.md: figures, goals, and whether each goal was met.

Each run is kept as JSON in bench/results, one file per number of rows; the page is made from all of them.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench import audit_page, ledger_page, postgres_page

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = Path(__file__).parent / "results"

LARGE_ROWS = 100_000_000

INTRODUCTION = """\
# Performance

Made by `make bench` (`python -m bench.bench`, and `--large` for the second table) and, for the last ones,
by `python -m bench.postgres`, `python -m bench.ledger_size` and `python -m bench.audit`; not edited by hand.

Facts: orders over 365 days and 50 channels in a DuckDB file, 18,250 groups. All contenders work on one file, in one
run, taking turns; figures are medians. Before each round a surcharge flips, so that **every group really changes**:
nobody wins by finding nothing to do. At the end all three target tables must hold the same rows, or no page is written.

- **By hand, plain**: one transaction: temporary table, delete range, insert, commit.
- **By hand, with checks**: the same, with grain, nulls, minimums and range tested on the staged rows, a full join with
  the target for the diff, and the written rows read back and compared.
- **reslice**: all of those checks, and the guards, the diff kept group by group, the replaced rows kept for the way
  back, the ledger in the same commit and read again after it.

The first rows are measured inside one process on one open connection (given to `reslice.open`), the later ones as whole
processes, from start to exit.
"""


@dataclass(frozen=True)
class Machine:
    """Where and with what a result was measured."""

    day: str
    cores: int
    memory_gib: int
    system: str
    python: str
    duckdb: str
    reslice: str
    load: float
    """The load average before the run; above half the cores, other work was in the way."""


@dataclass(frozen=True)
class Result:
    """One run of the benchmark: median seconds, and peak memory of whole processes in MiB."""

    machine: Machine
    rows: int
    rounds: int
    memory_limit: str
    seconds: Mapping[str, float]
    peak_mib: Mapping[str, float]


@dataclass(frozen=True)
class Goal:
    """One line of the page: what was measured, beside what, and the limit that was set for it beforehand."""

    job: str
    measured: str
    beside: tuple[str, ...]
    limit: Callable[[Mapping[str, float]], float]
    words: str


def machine() -> Machine:
    """Return this machine, today, and the versions in use."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        day=datetime.now(UTC).date().isoformat(),
        cores=os.cpu_count() or 1,
        memory_gib=round(memory / 2**30),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        duckdb=version("duckdb"),
        reslice=version("reslice"),
        load=round(os.getloadavg()[0], 2),
    )


def seconds_goals(rows: int) -> list[Goal]:
    """Return the goals in seconds that were set for this number of rows."""
    whole_beside = ("whole plain", "whole checked")
    if rows >= LARGE_ROWS:
        whole = Goal(
            "Whole range, one publish", "whole reslice", whole_beside,
            lambda s: 1.25 * s["whole checked"], "at most 1.25 times with checks",
        )  # fmt: skip
    else:
        whole = Goal(
            "Whole range, one publish", "whole reslice", whole_beside,
            lambda s: s["whole checked"] + 0.25, "at most with checks + 0.25 s",
        )  # fmt: skip
    return [
        whole,
        Goal(
            "Whole range, nothing changed", "unchanged reslice", ("staging",),
            lambda s: 1.1 * s["staging"] + 0.1, "at most 1.1 times staging + 0.1 s",
        ),
        Goal(
            "365 publishes of one day", "days reslice", ("days plain", "days checked"),
            lambda s: s["days checked"], "faster than with checks",
        ),
        Goal(
            "the same, the aim", "days reslice", ("days plain", "days checked"),
            lambda s: 0.5 * s["days checked"], "at most 0.5 times with checks",
        ),
        Goal(
            "Process: one day", "process day reslice", ("process day script",),
            lambda s: 3 * s["process day script"], "at most 3 times the bare script",
        ),
        Goal("Process: `--help`", "process help", (), lambda s: 0.15, "at most 0.15 s"),
    ]  # fmt: skip


MEMORY_GOALS = [
    Goal(
        "Peak memory, one day", "day reslice", ("day script",),
        lambda s: 1.5 * s["day script"], "at most 1.5 times the bare script",
    ),
    Goal(
        "Peak memory, whole range", "year reslice", ("year script",),
        lambda s: 1.5 * s["year script"], "at most 1.5 times the bare script",
    ),
]  # fmt: skip


def row(goal: Goal, figures: Mapping[str, float], show: Callable[[float], str]) -> str:
    """Return one line of the table."""
    limit = goal.limit(figures)
    value = figures[goal.measured]
    plain, checked, *_ = (*(show(figures[name]) for name in goal.beside), "", "")
    met = "yes" if value <= limit else f"**no** ({value / limit:.2f} times the limit)"
    return f"| {goal.job} | {plain} | {checked} | **{show(value)}** | {goal.words}: {show(limit)} | {met} |"


def section(result: Result) -> str:
    """Return one run as a heading, the machine, and its table."""
    where = result.machine
    lines = [
        f"## {result.rows:,} fact rows",
        "",
        f"{where.day}; {where.cores} cores, {where.memory_gib} GiB, {where.system}; reslice {where.reslice}, "
        f"DuckDB {where.duckdb} with `memory_limit={result.memory_limit}`, Python {where.python}; "
        f"medians of {result.rounds} rounds; load average before the run {where.load}"
        f"{': **other work was running**' if where.load > where.cores / 2 else ''}.",
        "",
        "| job | by hand, plain¹ | by hand, with checks | reslice | goal | met |",
        "|---|---|---|---|---|---|",
    ]
    goals = [goal for goal in seconds_goals(result.rows) if goal.measured in result.seconds]
    memory_goals = [goal for goal in MEMORY_GOALS if goal.measured in result.peak_mib]
    lines += [row(goal, result.seconds, lambda value: f"{value:.3f} s") for goal in goals]
    lines += [row(goal, result.peak_mib, lambda value: f"{value:.0f} MiB") for goal in memory_goals]
    lines += ["", "¹ staging alone where nothing changed; the bare script where processes are compared.", ""]
    lines += [
        f"- {text}: {result.seconds[name]:.3f} s." for name, text in OTHER_FIGURES.items() if name in result.seconds
    ]
    return "\n".join([*lines, *reasons(goals, result.seconds), *reasons(memory_goals, result.peak_mib)])


def reasons(goals: list[Goal], figures: Mapping[str, float]) -> list[str]:
    """Return the lines that say which of the goals were not met, and why."""
    lines: dict[str, str] = {}
    for goal in goals:
        if figures[goal.measured] > goal.limit(figures):
            lines.setdefault(
                goal.measured, f"\nNot met: {goal.job}. {REASONS.get(goal.measured, 'The reason is not known.')}"
            )
    return list(lines.values())


# Why a goal is out of reach, by what is measured; printed only below a table in which the goal was not met.
REASONS = {
    "whole reslice": (
        "What reslice adds grows with the groups and not with the facts: two fingerprints of 18,250 rows before the "
        "publish and two after it, the diff group by group, the replaced rows kept, the ledger. That is the same "
        "sixth of a second at any number of facts; the goal allows a quarter of a time that a fast machine makes short."
    ),
    "days reslice": (
        "A publish of one day is about a dozen statements of a millisecond each, whatever the number of facts: the "
        "fence, the look for a later run, the fingerprint of the day before and after, the rows kept for the way back, "
        "a write that turns a concurrent UPDATE into a conflict, delete, insert, commit, and "
        "the row of the ledger. By hand with checks it is nine, and one of them scans the facts; staging once for all "
        "days saves that scan, and no more. Where one commit will do, the whole range in one publish is the fast way."
    ),
    "process day reslice": (
        "The work in the database is the smaller part. The rest is start-up: Python reads the command line, the "
        "contract reader with pydantic and a YAML parser, and the driver before the first statement runs; the bare "
        "script reads the driver alone."
    ),
}

OTHER_FIGURES = {
    "rewrite reslice": "Whole range with `--rewrite` when nothing changed",
    "process year reslice": "Whole range as a process, `reslice run … --rewrite`",
    "process year script": "Whole range as a process, the bare script",
}


def write(result: Result) -> str:
    """Keep the result, write the page from all results there are, and return the section of this one."""
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / f"{result.rows}.json"
    kept.write_text(json.dumps(asdict(result), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    write_page()
    return section(result)


def write_page() -> None:
    """Write the page from every result that was kept."""
    results = [read(path) for path in RESULTS.glob("[0-9]*.json")]
    sections = [section(each) for each in sorted(results, key=lambda each: each.rows)]
    PAGE.parent.mkdir(exist_ok=True)
    pieces = [INTRODUCTION.strip(), *sections, *postgres_page.kept_sections(), *ledger_page.kept_sections()]
    pieces += audit_page.kept_sections()
    PAGE.write_text("\n\n".join(pieces) + "\n", encoding="utf-8")


def read(path: Path) -> Result:
    """Return a result that was kept."""
    values = json.loads(path.read_text(encoding="utf-8"))
    return Result(**{**values, "machine": Machine(**values["machine"])})
