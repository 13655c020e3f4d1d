"""The table of the performance page that tells how long an audit reads, from the result that was kept last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "results" / "audit.json"

FILES = 1000
JOBS = {"sql": "{files:,} SQL files", "twice": "{twice:,} SQL files", "dbt": "{files:,} dbt models"}
"""What is measured, one folder each."""

SECONDS_MAX = 10.0
TIMES_MAX = 2.2


@dataclass(frozen=True)
class Result:
    """Of each folder its lines, the median seconds, and those of processors; `machine` as of the page."""

    machine: Mapping[str, Any]
    files: int
    rounds: int
    lines: Mapping[str, int]
    seconds: Mapping[str, float]
    processor_seconds: Mapping[str, float]


def section(result: Result) -> str:
    """Return the result as a heading, the machine, and its table."""
    where = result.machine
    busy = ": **other work was running**" if where["load"] > where["cores"] / 2 else ""
    lines = [
        "## An audit",
        "",
        "`reslice audit` of a folder, as a whole process: made-up jobs of 20 to 150 lines, some of which declare their "
        "table, and incremental dbt models. No dialect is named.",
        "",
        f"{where['day']}; {where['cores']} cores, {where['memory_gib']} GiB, {where['system']}; reslice "
        f"{where['reslice']}, Python {where['python']}; medians of {result.rounds} rounds; load average before the run "
        f"{where['load']}{busy}.",
        "",
        "| folder | lines | of processors | seconds | goal | met |",
        "|---|---|---|---|---|---|",
    ]
    twice = result.seconds["twice"] / result.seconds["sql"]
    for name, words in JOBS.items():
        took = result.seconds[name]
        is_met = twice <= TIMES_MAX if name == "twice" else took <= SECONDS_MAX
        goal = f"at most {TIMES_MAX} times the half: {twice:.2f}" if name == "twice" else f"at most {SECONDS_MAX:.0f} s"
        lines.append(
            f"| {words.format(files=result.files, twice=2 * result.files)} | {result.lines[name]:,} "
            f"| {result.processor_seconds[name]:.1f} s | **{took:.2f} s** | {goal} | {'yes' if is_met else '**no**'} |"
        )
    return "\n".join(lines)


def keep(result: Result) -> None:
    """Keep the result for the page."""
    KEPT.write_text(json.dumps(asdict(result), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def kept_sections() -> list[str]:
    """Return the section of the result that was kept; none when there is none."""
    if not KEPT.is_file():
        return []
    return [section(Result(**json.loads(KEPT.read_text(encoding="utf-8"))))]
