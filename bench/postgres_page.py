"""The table of the performance page that tells what publishing on PostgreSQL costs, from the result kept last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "results" / "postgres.json"


@dataclass(frozen=True)
class Result:
    """Median seconds of each job, and of each hold of the table (`… lock`)."""

    machine: Mapping[str, Any]
    server: str
    rows: int
    large: int
    rounds: int
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Goal:
    """One line: what is measured, beside what, and how many times that it may take; set beforehand."""

    job: str
    measured: str
    beside: str
    times: float


GOALS = (
    Goal("Whole range, one publish", "whole reslice", "whole checked", 1.3),
    Goal("365 publishes of one day", "days reslice", "days checked", 1.0),
    Goal("How long the table is held, whole range", "whole reslice lock", "whole plain lock", 2.0),
    Goal("How long the table is held, one day of 365", "days reslice lock", "days plain lock", 2.0),
)
ONE_DAY = Goal("One day", "one day large_orders", "one day small_orders", 2.0)
BESIDE = {"checked": "with checks", "plain": "plain"}


def section(result: Result) -> str:
    """Return the result as a heading, the machine, and its tables."""
    where = result.machine
    busy = ": **other work was running**" if where["load"] > where["cores"] / 2 else ""
    lines = [
        "## PostgreSQL",
        "",
        f"The same {result.rows:,} facts in a local PostgreSQL {result.server} with the settings it comes with, an "
        "index on the date of facts and targets, the same ways by hand. *Held* is how long other writers of the "
        "table wait: by hand from the DELETE, by reslice from the lock, until the commit has returned; readers never "
        "wait.",
        "",
        f"{where['day']}; {where['cores']} cores, {where['memory_gib']} GiB, {where['system']}; reslice "
        f"{where['reslice']}, Python {where['python']}; medians of {result.rounds} rounds; load average before the run "
        f"{where['load']}{busy}.",
        "",
        "| job | by hand | reslice | times | goal | met |",
        "|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        hand, ours = result.seconds[goal.beside], result.seconds[goal.measured]
        way = next(words for name, words in BESIDE.items() if name in goal.beside)
        lines.append(_row(goal, f"{way}: {_shown(hand)}", hand, ours))
    staging, unchanged = result.seconds["staging"], result.seconds["unchanged reslice"]
    lines += [
        "",
        f"- Whole range, nothing changed: {_shown(unchanged)}; the staging alone, by hand, {_shown(staging)}.",
        "",
        f"Cost follows the slice, not the table: one day published into a target of 500,000 rows and into one of "
        f"{result.large:,}, both with an index on the slice column.",
        "",
        "| job | 500,000 rows | the large target | times | goal | met |",
        "|---|---|---|---|---|---|",
    ]
    small, large = result.seconds[ONE_DAY.beside], result.seconds[ONE_DAY.measured]
    lines.append(_row(ONE_DAY, _shown(small), small, large))
    held = GOALS[2]
    if result.seconds[held.measured] > held.times * result.seconds[held.beside]:
        lines += ["", HELD_LONGER]
    return "\n".join(lines)


HELD_LONGER = (
    "Not met: the hold over the whole range. By hand it is a DELETE and an INSERT; here the rows are also compared "
    "with what was staged against, and read back before the commit, all of it under the lock."
)


def _row(goal: Goal, beside: str, limit: float, value: float) -> str:
    met = "yes" if value <= goal.times * limit else "**no**"
    return f"| {goal.job} | {beside} | {_shown(value)} | **{value / limit:.2f}** | at most {goal.times:g} | {met} |"


def _shown(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 0.1 else f"{seconds * 1000:.1f} ms"


def keep(result: Result) -> None:
    """Keep the result for the page."""
    KEPT.write_text(json.dumps(asdict(result), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def kept_sections() -> list[str]:
    """Return the section of the result that was kept; none when there is none."""
    if not KEPT.is_file():
        return []
    return [section(Result(**json.loads(KEPT.read_text(encoding="utf-8"))))]
