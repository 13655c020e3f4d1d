"""A comparison with the source that was asked for: begun, followed, ended early, and answered on the target's page."""

from __future__ import annotations

from typing import Any

from reslice.layout import placed
from reslice.project import misused
from reslice.report_json import error_value
from reslice.studio.jobs import Job, Progress
from reslice.studio.looking import beside
from reslice.studio.target_view import contract_of
from reslice.studio.values import Ask, View, instant

_FOLLOW_SECONDS = 1


def start(ask: Ask) -> str:
    """Begin to compare a range, or every slice, with the source; return where that is followed."""
    contract = contract_of(ask)
    job = ask.jobs.start(beside(ask.project), contract.name, ask.word("range"))
    return ask.links.job(contract.name, job.id) or ""


def cancel(ask: Ask) -> str:
    """Ask a comparison to end; return where that is followed."""
    contract, job = contract_of(ask), _job(ask)
    job.stop(Progress.CANCELLED)
    return ask.links.job(contract.name, job.id) or ""


def view(ask: Ask) -> View | str:
    """Return how far a comparison is; where it has its answer, the address of that."""
    contract, job = contract_of(ask), _job(ask)
    if job.progress is Progress.DONE and "stay" not in ask.query:
        return ask.links.target(contract.name)
    return View("status", _values(ask, job), {}, _FOLLOW_SECONDS if job.is_running else None)


def twin(ask: Ask) -> View:
    """Return how far a comparison is, and no more than that."""
    contract_of(ask)
    return View("status", _values(ask, _job(ask)))


def _values(ask: Ask, job: Job) -> dict[str, Any]:
    percent = job.percent
    return {
        "job": job.id,
        "target": job.target,
        "range": job.range or None,
        "asked_at": instant(job.asked_at),
        "progress": job.progress.value,
        "step": job.step,
        "percent": None if percent is None or percent < 0 else round(percent),
        "seconds": round(job.seconds_so_far, 1),
        "limit_seconds": ask.jobs.limit_seconds,
        "error": None if job.error is None else error_value(job.error, place=ask.place),
        "command": placed(f"reslice status {_words(job)}", ask.place),
    }


def _words(job: Job) -> str:
    import shlex

    return " ".join(map(shlex.quote, filter(None, (job.target, job.range))))


def _job(ask: Ask) -> Job:
    """Return the comparison that the address names; Misused[usage] where it is another target's, or forgotten."""
    job = ask.jobs.find(ask.path["job"])
    if job is None or job.target != contract_of(ask).name:
        found = "there is none of that address; it ended a while ago, or the studio was started again"
        raise misused("usage", "a comparison", "a comparison that is at work, or has just ended", found, "")
    return job
