"""reslice: re-run a backfill without doubling the total.

    project = reslice.open("reslice.yml")
    run = project.target("daily_orders").run("2026-01-01..2026-01-02")

Names are loaded when they are first used, so that importing reslice costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reslice.contract import Contract
    from reslice.doctor import Diagnosis, Finding
    from reslice.errors import (
        Interrupted,
        Misused,
        OutcomeUnknown,
        PartlyPublished,
        Refused,
        ResliceError,
        Retryable,
        Stopped,
    )
    from reslice.plan_file import PlanFile
    from reslice.project import Project
    from reslice.project import open_project as open
    from reslice.prove import prove_table
    from reslice.prove.values import Proof
    from reslice.ranges import Range, Scope
    from reslice.recorded import LedgerRun, Pruned, Version
    from reslice.report_json import as_json
    from reslice.target_handle import TargetHandle
    from reslice.values import (
        Approved,
        Check,
        Checked,
        ControlLine,
        Counts,
        Diff,
        Fingerprint,
        GroupDiff,
        Guard,
        Outcome,
        Published,
        Request,
        Run,
        SliceDiff,
        Staged,
        Total,
    )
    from reslice.writers import writer_lock

__all__ = [
    "Approved",
    "Check",
    "Checked",
    "Contract",
    "ControlLine",
    "Counts",
    "Diagnosis",
    "Diff",
    "Finding",
    "Fingerprint",
    "GroupDiff",
    "Guard",
    "Interrupted",
    "LedgerRun",
    "Misused",
    "Outcome",
    "OutcomeUnknown",
    "PartlyPublished",
    "PlanFile",
    "Project",
    "Proof",
    "Pruned",
    "Published",
    "Range",
    "Refused",
    "Request",
    "ResliceError",
    "Retryable",
    "Run",
    "Scope",
    "SliceDiff",
    "Staged",
    "Stopped",
    "TargetHandle",
    "Total",
    "Version",
    "as_json",
    "open",
    "prove_table",
    "writer_lock",
]

_WHERE = {
    "Contract": "contract",
    "Diagnosis": "doctor",
    "Finding": "doctor",
    "LedgerRun": "recorded",
    "PlanFile": "plan_file",
    "Project": "project",
    "Proof": "prove.values",
    "Pruned": "recorded",
    "Range": "ranges",
    "Scope": "ranges",
    "TargetHandle": "target_handle",
    "Version": "recorded",
    "as_json": "report_json",
    "prove_table": "prove",
    "writer_lock": "writers",
}
_ERRORS = frozenset(
    {"Interrupted", "Misused", "OutcomeUnknown", "PartlyPublished", "Refused", "ResliceError", "Retryable", "Stopped"}
)


def __getattr__(name: str) -> Any:
    """Load a public name from the module that holds it."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'reslice' has no attribute {name!r}")
    if name == "open":
        return importlib.import_module("reslice.project").open_project
    where = _WHERE.get(name, "errors" if name in _ERRORS else "values")
    return getattr(importlib.import_module(f"reslice.{where}"), name)
