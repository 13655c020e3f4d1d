"""Comparisons with the source that a reader asks for: each in a thread, bounded in time, and ended when asked.

One of a target at a time. Nothing is written to the database; an answer is kept until the next one, or the end.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from reslice.contract import Contract
from reslice.errors import Interrupted, ResliceError
from reslice.project import Project
from reslice.studio.standing import Compared
from reslice.values import Run

LIMIT_SECONDS = 60.0
"""How long one comparison may take; beyond that, `reslice status` in a terminal has all the time it needs."""
_KEPT = 20
"""So many comparisons that have ended are remembered, so that their pages can still be looked at."""


class Progress(StrEnum):
    """How far a comparison got."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    OUT_OF_TIME = "out of time"


@dataclass(slots=True)
class Job:
    """One comparison of a range of a target. `range` is empty where all its slices were asked for."""

    id: str
    target: str
    range: str
    asked_at: datetime
    project: Project = field(repr=False)
    step: str = "opening the database"
    progress: Progress = Progress.RUNNING
    ends_as: Progress = Progress.FAILED
    error: ResliceError | None = None
    seconds: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.progress is Progress.RUNNING

    @property
    def seconds_so_far(self) -> float:
        """How long it has been at work, or was."""
        return time.monotonic() - self._began if self.is_running else self.seconds

    @property
    def percent(self) -> float | None:
        """How far the statement is that runs now, where the database knows."""
        return self.project.progress() if self.is_running else None

    def on_step(self, step: str) -> None:
        """Take note of what it does now."""
        self.step = step

    def stop(self, ends_as: Progress) -> None:
        """Ask it to end, for this reason; it rolls back what is open."""
        if self.is_running and self.ends_as is Progress.FAILED:
            self.ends_as = ends_as
            self.project.interrupt()

    def ended(self, progress: Progress, error: ResliceError | None = None) -> None:
        """Take note of how it ended."""
        self.seconds, self.error = time.monotonic() - self._began, error
        self.progress = progress


class Jobs:
    """The comparisons of one studio."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self.limit_seconds = limit_seconds
        self._jobs: dict[str, Job] = {}
        self._compared: dict[str, Compared] = {}
        self._is_over = False
        self._lock = threading.Lock()

    def start(self, project: Project, target: str, range: str) -> Job:
        """Begin a comparison; the one that is at work for that target where there is one."""
        with self._lock:
            running = next((job for job in self._jobs.values() if job.target == target and job.is_running), None)
            if running is not None:
                return running
            job = Job(secrets.token_hex(8), target, range, datetime.now(UTC), project)
            self._jobs[job.id] = job
            self._forget()
            if self._is_over:
                job.ended(Progress.CANCELLED)
                return job
        threading.Thread(target=self._work, args=(job,), name="reslice-status", daemon=True).start()
        return job

    def find(self, job_id: str) -> Job | None:
        """Return a comparison by its id."""
        with self._lock:
            return self._jobs.get(job_id)

    def compared(self, contract: Contract) -> Compared | None:
        """Return the last answer on a target as its contract is now; None when there is none."""
        with self._lock:
            return self._compared.get(contract.digest)

    def stop(self) -> None:
        """End every comparison, and begin no other."""
        with self._lock:
            self._is_over = True
            jobs = list(self._jobs.values())
        for job in jobs:
            job.stop(Progress.CANCELLED)

    def _forget(self) -> None:
        ended = [job.id for job in self._jobs.values() if not job.is_running]
        for job_id in ended[:-_KEPT]:
            del self._jobs[job_id]

    def _work(self, job: Job) -> None:
        timer = threading.Timer(self.limit_seconds, job.stop, (Progress.OUT_OF_TIME,))
        timer.daemon = True
        timer.start()
        try:
            self._answer(job, lambda: job.project.target(job.target).status(job.range or None, on_step=job.on_step))
        finally:
            timer.cancel()
            if job.is_running:  # a fault of ours, which whoever runs the studio is told
                job.ended(Progress.FAILED)

    def _answer(self, job: Job, status: Callable[[], Run]) -> None:
        """Take the answer of a comparison; rows that do not add up to the control are an answer as well."""
        try:
            self._take(job, Compared(status(), job.asked_at))
        except Interrupted as error:
            job.ended(job.ends_as, error)
        except ResliceError as error:
            differing = [] if error.run is None else [line.slices_differing for line in error.run.controls]
            if error.run is None or not any(differing):
                job.ended(Progress.FAILED, error)
                return
            self._take(job, Compared(error.run, job.asked_at, frozenset(label for each in differing for label in each)))

    def _take(self, job: Job, compared: Compared) -> None:
        with self._lock:
            self._compared[job.project.target(job.target).contract.digest] = compared
        job.ended(Progress.DONE)
