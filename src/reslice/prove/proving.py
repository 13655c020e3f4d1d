"""The one function that holds the control flow: copy, run, look, run again, look, compare, and let the copy be gone.

The database itself is only read, unless the proof is asked for in place. Whatever ends a proof, the sandbox is removed;
in place, the rows from before are put back.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from reslice.contract import Connection
from reslice.engines import sql
from reslice.engines.base import Engine
from reslice.engines.failures import interrupted
from reslice.engines.sandbox import Place, Wish
from reslice.errors import SAME_AGAIN, Failure, Interrupted, Misused, Retryable
from reslice.prove import hard, in_place, places, script
from reslice.prove.command import Running, check_found, tail
from reslice.prove.shape import Shape, looks_like_a_stamp
from reslice.prove.table import Opened, compared_with_source, described, opened
from reslice.prove.values import Between, Comparison, Group, Proof, Subject, Taken, Task

OnStep = Callable[[str], None]
LINES_SHOWN = 12
"""Lines of a failed command that stand in the error."""


class Proving:
    """One proof, which can be stopped from another thread."""

    def __init__(self, connection: Connection, subject: Subject, task: Task) -> None:
        self._connection = connection
        self._subject = subject
        self._task = task
        self._words = task.words
        self._stop = threading.Event()
        self._engine: Engine | None = None
        self._on_step: OnStep = _tell_nobody
        self._on_kept: OnStep = _tell_nobody
        self._has_kept_rows = False
        """Whether rows are kept that are not put back yet."""
        self._shape: Shape | None = None

    def interrupt(self) -> None:
        """End the command that runs, and let everything be as it was; from any thread."""
        self._stop.set()
        engine = self._engine
        if engine is not None:
            engine.interrupt()

    def progress(self) -> float | None:
        """Return None: how far a command is nobody knows."""
        return None

    def prove(self, on_step: OnStep | None = None, on_kept: OnStep | None = None) -> Proof:
        """Run the command several times and return what was found.

        `on_kept` is told, before the command runs in place, where the rows from before are and how they are put back.

        Raises Misused[usage] when it cannot be started, Refused[sandbox] without a sandbox, Retryable[command_failed]
        when the command fails, Interrupted, and what a database raises. The sandbox is gone in any case.
        """
        began = time.monotonic()
        self._on_step, self._on_kept = on_step or _tell_nobody, on_kept or _tell_nobody
        try:
            proof = self._prepared()
        except Interrupted as error:
            raise self._interrupted() from error
        return replace(proof, seconds=time.monotonic() - began)

    def _prepared(self) -> Proof:
        """Refuse a command that cannot be run before anything is copied, and prove the others."""
        if self._task.script is None:
            check_found(self._words, self._subject.name)
            return self._placed()
        script.check(self._task.script)
        with script.command(self._task.script, self._connection.engine) as self._words:
            return self._placed()

    def _interrupted(self) -> Interrupted:
        task = self._task
        failure = Failure("interrupted", f"{task.times} runs of:  {task.shown}", ("it was asked to stop",), SAME_AGAIN)
        gone = "the rows from before are in the table" if task.in_place else "the sandbox is gone"
        return Interrupted(self._subject.name, [failure], unchanged=f"the command was ended, and {gone}")

    def _placed(self) -> Proof:
        """Prove in a place that is gone afterwards."""
        task = self._task
        self._on_step("copying the database" if not task.in_place else "looking at the table")
        more = task.crash or task.at_once
        place = places.made(self._connection, Wish(task.in_place, more, self._on_step, self._stop.is_set))
        kept = ""
        try:
            proof = self._in_place(place) if task.in_place else self._proved(place)
        finally:
            if task.keep and not task.in_place and not self._stop.is_set():
                kept = place.keep()
            elif not self._has_kept_rows:
                place.remove()
        return replace(proof, kept=kept, notes=(*place.notes, *proof.notes))

    def _in_place(self, place: Place) -> Proof:
        """Keep the rows from before, prove, and put them back, whatever happens."""
        with opened(place, self._subject) as now:
            in_place.keep(now)
        self._has_kept_rows = True
        by_hand = place.put_back_by_hand(self._subject.table)
        self._on_kept(
            f"{place.kept} holds the rows from before; if reslice is killed, they are put back by:  {by_hand}"
        )
        try:
            return self._proved(place)
        finally:
            self._on_step("putting the rows from before back")
            in_place.put_back(place, self._subject)
            self._has_kept_rows = False

    def _proved(self, place: Place) -> Proof:
        subject, task = self._subject, self._task
        with self._open(place) as now:
            before = now.evidence.take("before", now.rows)
        self._shape = now.shape
        taken = [self._run(place, number) for number in range(1, task.times + 1)]
        self._on_step("comparing")
        last = f"run_{task.times}"
        with self._open(place) as now:
            numbers = range(2, task.times + 1)
            later = (replace(now.evidence.runs("run_1", f"run_{number}"), run=number) for number in numbers)
            between = next((each for each in later if each.count), Comparison(Between.RUNS))
            outside = now.evidence.outside("before", last)
            keys = now.evidence.keys(last)
            source = None if subject.contract is None else compared_with_source(now, subject, last, "before")
            stamps = _stamps(now, between)
        proof = Proof(
            subject, task, now.shape.target.resolved, place.shown, before, tuple(taken), between, outside, keys, source,
            tuple(each.name for each in now.shape.values), now.shape.ignored, stamps,
            notes=_notes(now.shape.numbered),
        )  # fmt: skip
        proof = replace(proof, real_changed=self._real_change(place, proof))
        return self._hard(place, proof)

    def _hard(self, place: Place, proof: Proof) -> Proof:
        """Ask what happens when the command is killed, and when two run at once, where that is wanted."""
        task, first = self._task, proof.runs[0]
        assert self._shape is not None, "the table was looked at before"
        setting = hard.Setting(
            place, self._subject, self._shape, self._words, task.timeout, self._stop, proof.before, first.state,
            first.seconds, first.idle, self._on_step,
        )  # fmt: skip
        seed = secrets.randbelow(10**6) if task.seed is None else task.seed
        crash = hard.crash(setting, task.tries, seed) if task.crash else None
        return replace(proof, crash=crash, at_once=hard.at_once(setting, task.tries) if task.at_once else None)

    def _run(self, place: Place, number: int) -> Taken:
        """Run the command once, and copy the table it leaves."""
        task = self._task
        assert self._shape is not None, "the table was looked at before the first run"
        table = sql.target_name(self._shape.target)
        mark = place.mark(table)
        self._on_step(f"run {number} of {task.times}")
        running = Running(self._words, place.way(), self._subject.name)
        ended = running.wait(task.timeout, self._stop, place.is_in_use if task.crash and number == 1 else None)
        if ended.code or ended.is_late:
            late = f"it was not over after {task.timeout}, and was ended" if ended.is_late else ""
            raise self._failed(place, number, (late or f"exit code {ended.code}", *tail(ended.output, LINES_SHOWN)))
        self._on_step(f"looking at the table after run {number}")
        wrote = place.mark(table) != mark if mark else None
        try:
            with self._open(place) as now:
                state = now.evidence.take(f"run_{number}", now.rows)
        except Misused as error:
            raise self._failed(place, number, ("exit code 0, and then", *error.failures[0].found)) from error
        return Taken(number, ended.seconds, state, ended.output, wrote, running.seconds_idle)

    def _failed(self, place: Place, number: int, found: tuple[str, ...]) -> Retryable:
        task = self._task
        if task.in_place:
            unchanged = "the command ran in the database itself; the rows from before are put back"
        else:
            unchanged = f"the command ran in a sandbox, {f'{place.shown}, which is kept' if task.keep else 'now gone'}"
        failure = Failure("command_failed", f"run {number} of {task.times} of:  {task.shown}", found, SAME_AGAIN)
        return Retryable(self._subject.name, [failure], unchanged=unchanged)

    def _real_change(self, place: Place, proof: Proof) -> str:
        """Say what became of the database itself while the command ran in its copy; nothing, mostly."""
        look = place.look_at_real()
        if look is None:
            return ""
        try:
            with look as real:
                now = described(real, self._subject, self._shape)
                state = now.evidence.live(now.rows)
        except (Misused, Retryable) as error:
            found = "; ".join(error.failures[0].found)
            return f"{proof.resolved} itself, not the copy, cannot be looked at after the command ran: {found}"
        if state.fingerprint == proof.before.fingerprint:
            return ""
        return (
            f"{now.shape.target.resolved} itself, not the copy, changed while the command ran:"
            f" {proof.before.rows} rows before, {state.rows} now"
        )

    @contextmanager
    def _open(self, place: Place) -> Iterator[Opened]:
        """Open a place in a way that can be interrupted."""
        with opened(place, self._subject, shape=self._shape) as now:
            self._engine = now.look.engine
            try:
                if self._stop.is_set():
                    raise interrupted(self._subject.name)
                yield now
            finally:
                self._engine = None


def _tell_nobody(_step: str) -> None:
    """Follow no step."""


def _stamps(now: Opened, between: Comparison) -> tuple[str, ...]:
    """Return the columns that moved between runs and look like stamps; none unless they are all that moved."""
    moved = [column for column in now.shape.values if column.name in between.columns]
    is_all = bool(moved) and set(between.counts) == {Group.CHANGED} and all(map(looks_like_a_stamp, moved))
    return tuple(column.name for column in moved) if is_all else ()


def _notes(numbered: tuple[str, ...]) -> tuple[str, ...]:
    if not numbered:
        return ()
    return (f"not compared, because the database fills it: {', '.join(numbered)}",)
