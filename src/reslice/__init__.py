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
    from reslice.project import Project, TargetHandle
    from reslice.project import open_project as open
    from reslice.ranges import Range, Scope
    from reslice.values import Diff, Fingerprint, LedgerRun, Run

__all__ = [
    "Contract",
    "Diff",
    "Fingerprint",
    "Interrupted",
    "LedgerRun",
    "Misused",
    "OutcomeUnknown",
    "PartlyPublished",
    "PlanFile",
    "Project",
    "Range",
    "Refused",
    "ResliceError",
    "Retryable",
    "Run",
    "Scope",
    "Stopped",
    "TargetHandle",
    "open",
]

_WHERE = {
    "Contract": "contract",
    "Diff": "values",
    "Fingerprint": "values",
    "LedgerRun": "values",
    "Run": "values",
    "PlanFile": "plan_file",
    "Project": "project",
    "TargetHandle": "project",
    "Range": "ranges",
    "Scope": "ranges",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that holds it."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'reslice' has no attribute {name!r}")
    module = importlib.import_module(f"reslice.{'project' if name == 'open' else _WHERE.get(name, 'errors')}")
    return getattr(module, "open_project" if name == "open" else name)
