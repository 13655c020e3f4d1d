"""A project is one `reslice.yml` and the database it names: what the command line does, as an API.

Each call opens the database and lets go of it afterwards. A DuckDB file is open in one process at a time, unless all of
them only read it, as `plan`, `verify`, `history` and `show` do; to a PostgreSQL server each call is a connection.
"""

from __future__ import annotations

import getpass
import importlib
import os
import re
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reslice import contract_file, given
from reslice.attempt import OnStep
from reslice.engines import ENGINES
from reslice.errors import SAME_AGAIN, Failure, Interrupted, Misused
from reslice.ranges import Range
from reslice.recorded import LedgerRun
from reslice.values import Run

if TYPE_CHECKING:
    from reslice.doctor import Diagnosis
    from reslice.engines.base import Engine
    from reslice.plan_file import PlanFile
    from reslice.target_handle import TargetHandle

UNTOUCHED = "nothing was read or written"
LOOK_WAIT = timedelta(seconds=5)
"""How long `history` and `show` wait for a process that has the file open, or a server that starts."""

GOING_ON = "going on"
"""The step that is told when a wait is over that was told of."""

_RUNS_NAMED = 5


def silent(_step: str) -> None:
    """Follow no step."""


def open_project(path: str | Path = "reslice.yml", connection: Any = None) -> Project:
    """Return the project of a contract file; a mistake in the file is Misused, with every mistake named.

    `connection` is an open connection of the caller's, in place of the one that the file names; its transaction is not
    touched, and it is never closed. On DuckDB the project works on a cursor of it, since one process owns a file. On
    PostgreSQL it is that of psycopg 3, and the project connects beside it, to the same server and as the same role.
    """
    return Project(contract_file.load(path), connection)


class Project:
    """One contract file and its database. One call at a time; `interrupt` and `progress` from any thread."""

    def __init__(self, file: Any, connection: Any = None) -> None:
        self._file = file
        self._connection = connection
        self._engine: Engine | None = None
        self._is_interrupted = False

    @property
    def path(self) -> Path:
        """The contract file."""
        path: Path = self._file.path
        return path

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets, in the file's order."""
        return tuple(self._file.targets)

    def target(self, name: str) -> TargetHandle:
        """Return one target by name; Misused[usage] when the contract has none of that name."""
        if name not in self._file.targets:
            raise self._no_target(name)
        from reslice.target_handle import TargetHandle

        return TargetHandle(self, self._file.targets[name])

    def _no_target(self, name: str) -> Misused:
        """Return the error for a name that no target has; the way on names the one that was meant, if it is near."""
        import difflib

        near = difflib.get_close_matches(name, self.targets, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        found = f"{self.path.name} has no target {name}; it has {', '.join(self.targets)}{hint}"
        after = f"reslice status {shlex.quote(near[0])}" if near else "reslice doctor"
        error = misused("usage", name, "a target of the contract", found, after)
        error.meant = (name, near[0]) if near else None
        return error

    def run(
        self,
        *,
        approve: str | PlanFile | None = None,
        again: str | None = None,
        wait: timedelta | str | None = None,
        **options: Any,
    ) -> Run:
        """Run the target that a recorded run or a plan file names; options as `TargetHandle.run`."""
        reference = approve if approve is not None else again
        if reference is None:
            found = "neither approve nor again is given"
            raise misused("usage", "run", "approve or again", found, "reslice run --help")
        name = self.show(reference, wait=wait).target if isinstance(reference, str) else reference.target
        return self.target(name).run(approve=approve, again=again, wait=wait, **options)

    def restore(
        self, run: str, range: str | date | Range | None = None, *, wait: timedelta | str | None = None, **options: Any
    ) -> Run:
        """Put back what a run replaced, of its slices in `range`; options as `TargetHandle.restore`."""
        undone = self.show(run, wait=wait)  # named by its id from here on: `last` is another run a moment later
        return self.target(undone.target).restore(undone.id, range, wait=wait, **options)

    def plan_restore(self, run: str, range: str | date | Range | None = None, *, on_step: OnStep | None = None) -> Run:
        """Return what a restore would change; nothing is written. What would refuse it is raised."""
        undone = self.show(run)
        return self.target(undone.target).plan_restore(undone.id, range, on_step=on_step)

    def history(self, target: str | None = None, limit: int = 20) -> tuple[LedgerRun, ...]:
        """Return the newest runs, newest first; none when there is no ledger yet."""
        with self.engine(read_only=True) as engine:
            return self._newest(engine, target, limit)

    def show(self, reference: str, *, target: str | None = None, wait: timedelta | str | None = None) -> LedgerRun:
        """Return one run with its slices and groups; RUN is an id, the unique beginning of one, `last` or `last~N`.

        With a `target`, `last` is the last run of that target. Targets with ledgers of their own have ids of their own:
        there it says which ledger is meant. Raises Misused[run_unknown] when no run or several match.
        """
        schemas, longest = self._schemas(target), given.wait(wait)
        with self.engine(read_only=True, wait=LOOK_WAIT if longest is None else longest) as engine:
            reference = sayable(reference)
            back = re.fullmatch(r"last(?:~(\d{1,9}))?", reference)
            if back and len(schemas) > 1:
                newest = self._newest(engine, None, int(back[1] or 0) + 1)[int(back[1] or 0) :]
                schemas = [self._file.targets[run.target].ledger.schema for run in newest if run.target in self.targets]
                reference = newest[0].id if newest else reference
            found = [run for schema in schemas for run in engine.ledger.find_runs(schema, reference, target)]
        if len(found) != 1:
            raise _unknown_run(reference, found)
        return found[0]

    def _newest(self, engine: Engine, target: str | None, limit: int) -> tuple[LedgerRun, ...]:
        found = [run for schema in self._schemas(target) for run in engine.ledger.runs(schema, target, limit)]
        return tuple(sorted(found, key=lambda run: run.requested_at, reverse=True)[:limit])

    def _schemas(self, target: str | None) -> list[str]:
        """Return the schemas of the ledgers, of one target or of all."""
        if target is not None:
            return [self.target(target).contract.ledger.schema]
        return list(dict.fromkeys(each.ledger.schema for each in self._file.targets.values()))

    def doctor(self, target: str | None = None, *, probe: bool = False) -> Diagnosis:
        """Return what is wrong, or worth a look, with one target or with all, and what to do; nothing is written.

        `probe` also tries what the engine does, in a database of its own that leaves nothing behind.
        """
        from reslice.doctor import doctor

        every = [*self._file.targets.values()]
        contracts = [self.target(target).contract] if target is not None else every
        with self.engine(read_only=True) as engine:
            return doctor(engine, contracts, every=every, probe=probe)

    def interrupt(self) -> None:
        """Make the call that runs now end as Interrupted, with everything rolled back."""
        self._is_interrupted = True
        if self._engine is not None:
            self._engine.interrupt()

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now; None when nothing runs or it is not known."""
        engine = self._engine
        return None if engine is None else engine.progress()

    @contextmanager
    def engine(self, *, read_only: bool, wait: timedelta = LOOK_WAIT, on_step: OnStep = silent) -> Iterator[Engine]:
        """Open the database for one call and let go of it; `wait` is for its file or its server to be free."""
        connection = self._file.connection
        module = importlib.import_module(ENGINES[connection.engine])
        if self._connection is not None:
            engine: Engine = module.adopt(self._connection, connection.shown)
        else:
            engine = module.connect(
                connection, read_only=read_only, wait=wait, on_wait=lambda found: self._on_wait(on_step, found)
            )
        self._engine = engine
        engine.on_wait = lambda found: on_step(f"waiting: {found}" if found else GOING_ON)
        if self._is_interrupted:
            engine.interrupt()
        try:
            yield engine
        except Interrupted as error:
            if read_only:
                error.unchanged = "nothing was written"
            raise
        finally:
            self._engine = None
            self._is_interrupted = False
            engine.close()

    def _on_wait(self, on_step: OnStep, found: str) -> None:
        on_step(f"waiting: {found}")
        if self._is_interrupted:
            failure = Failure("interrupted", "to stop", ("it was waiting for the database",), SAME_AGAIN)
            raise Interrupted(self._file.connection.shown, [failure], unchanged=UNTOUCHED)


def _unknown_run(reference: str, found: Sequence[LedgerRun]) -> Misused:
    """Return the error that says which runs a reference matched, or that it matched none."""
    matched = ", ".join(f"{run.id} of {run.target}" for run in found[:_RUNS_NAMED])
    matched += f" and {len(found) - _RUNS_NAMED} more" if len(found) > _RUNS_NAMED else ""
    words = f"{reference!r} matches {len(found)} runs: {matched}" if found else f"no run matches {reference!r}"
    asked = "a RUN is an id such as r-0042, the unique beginning of one, last, or last~1"
    return misused("run_unknown", f"the run {reference}", asked, words, "reslice history")


def actor() -> str:
    """Return who runs this, as `user@host`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return sayable(f"{user}@{socket.gethostname()}")


def sayable(text: str) -> str:
    """Return text that every database can hold: what is no UTF-8, as a shell may give it, and NUL become a `?`."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def misused(kind: str, about: str, asked: str, found: str, after: str) -> Misused:
    """Return the error for a call that cannot be understood."""
    return Misused(about, [Failure(kind, asked, (found,), after)], unchanged=UNTOUCHED)
