"""The table of the performance page that tells what a large ledger costs, from the result that was kept last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "results" / "ledger.json"

JOBS = {
    "run": ("`run` of one day, rewritten", 1.25),
    "unchanged": ("`run` of one day, unchanged", 1.25),
    "affected": ("`run` of one day, with `affected` declared", 1.25),
    "affected range": ("`plan` of a range no run has had, with `affected` declared", 1.5),
    "plan": ("`plan` of one day", 1.25),
    "history": ("`history`", 1.5),
    "history target": ("`history TARGET`", 1.5),
    "show last": ("`show last`", 1.5),
    "show": ("`show r-0001`, a year of slices", 1.5),
}
"""What is measured, and how many times the small ledger's seconds it may take; set beforehand."""


@dataclass(frozen=True)
class Result:
    """Median seconds of each job, with a ledger of one run and with a large one; `machine` as of the page."""

    machine: Mapping[str, Any]
    runs: int
    rounds: int
    mebibytes: float
    seconds: Mapping[str, tuple[float, float]]
    look_seconds: float
    """How long the first run of a day looks for what is older than `keep_days`."""


def section(result: Result) -> str:
    """Return the result as a heading, the machine, and its table."""
    where = result.machine
    busy = ": **other work was running**" if where["load"] > where["cores"] / 2 else ""
    lines = [
        f"## A ledger of {result.runs:,} runs",
        "",
        f"Beside a ledger of one run, with the same facts. Each of the {result.runs:,} has one to four slices, up to "
        f"three groups, and the texts of a real run; of the last 90 days the replaced rows are kept. The file has "
        f"{result.mebibytes:.0f} MiB. Whole processes, taking turns; medians of {result.rounds} rounds.",
        "",
        f"{where['day']}; {where['cores']} cores, {where['memory_gib']} GiB, {where['system']}; reslice "
        f"{where['reslice']}, DuckDB {where['duckdb']}, Python {where['python']}; load average before the run "
        f"{where['load']}{busy}.",
        "",
        "| job | one run | many runs | times | goal | met |",
        "|---|---|---|---|---|---|",
    ]
    for name, (job, limit) in JOBS.items():
        small, large = result.seconds[name]
        met = "yes" if large <= limit * small else "**no**"
        lines.append(f"| {job} | {small:.3f} s | {large:.3f} s | **{large / small:.2f}** | at most {limit} | {met} |")
    lines += ["", f"- The first run of a day looks for what is older than `keep_days`: {result.look_seconds:.3f} s."]
    return "\n".join(lines)


def keep(result: Result) -> None:
    """Keep the result for the page."""
    KEPT.write_text(json.dumps(asdict(result), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def kept_sections() -> list[str]:
    """Return the section of the result that was kept; none when there is none."""
    if not KEPT.is_file():
        return []
    values = json.loads(KEPT.read_text(encoding="utf-8"))
    return [section(Result(**values))]
