"""A project is one `reslice.yml` and the database it names: what the command line does, as an API.

Each call opens the database and lets go of it afterwards: DuckDB files open in one process at a time, and `plan`,
`verify`, `history` and `show` open them read-only.
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
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reslice import consents, contract_file, ranges
from reslice.commands import command
from reslice.contract import Contract
from reslice.engines import ENGINES
from reslice.errors import SAME_AGAIN, Failure, Misused, Refused, ResliceError
from reslice.ranges import Range, Scope
from reslice.run import Approval, OnOpened, OnStep, Options
from reslice.values import Fingerprint, Kind, LedgerRun, Request, Run

if TYPE_CHECKING:
    from reslice.engines.base import Engine
    from reslice.plan_file import PlanFile

UNTOUCHED = "nothing was read or written"
LOOK_WAIT = timedelta(seconds=5)
"""How long `history` and `show` wait for a process that holds the database."""


def _silent(_step: str) -> None:
    """Follow no step."""


def open_project(path: str | Path = "reslice.yml", connection: Any = None) -> Project:
    """Return the project of a contract file; a mistake in the file is Misused, with every mistake named.

    `connection` is an open DuckDB connection to use instead of opening the file: one process owns a DuckDB file. The
    project works on a cursor of it, in transactions of its own, and never closes it.
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
            import difflib

            near = difflib.get_close_matches(name, self.targets, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found = f"{self.path.name} has no target {name}{hint}; it has {', '.join(self.targets)}"
            raise _misused("usage", name, "a target of the contract", found, "")
        return TargetHandle(self, self._file.targets[name])

    def run(
        self,
        *,
        approve: str | PlanFile | None = None,
        again: str | None = None,
        wait: timedelta | None = None,
        **options: Any,
    ) -> Run:
        """Run the target that a recorded run or a plan file names; options as `TargetHandle.run`."""
        reference = approve if approve is not None else again
        if reference is None:
            raise _misused("usage", "run", "a target, --approve or --again", "none is given", "reslice run --help")
        name = self.show(reference, wait=wait).target if isinstance(reference, str) else reference.target
        return self.target(name).run(approve=approve, again=again, wait=wait, **options)

    def history(self, target: str | None = None, limit: int = 20) -> tuple[LedgerRun, ...]:
        """Return the newest runs, newest first; none when there is no ledger yet."""
        with self.engine(read_only=True) as engine:
            return self._newest(engine, target, limit)

    def show(self, reference: str, *, target: str | None = None, wait: timedelta | None = None) -> LedgerRun:
        """Return one run with its slices and groups; RUN is an id, the unique beginning of one, `last` or `last~N`.

        Targets with ledgers of their own have ids of their own: there `target` says which ledger is meant. Raises
        Misused[run_unknown] when no run or several match.
        """
        schemas = self._schemas(target)
        with self.engine(read_only=True, wait=LOOK_WAIT if wait is None else wait) as engine:
            reference = _sayable(reference)
            back = re.fullmatch(r"last(?:~(\d{1,9}))?", reference)
            if back and len(schemas) > 1:
                newest = self._newest(engine, None, int(back[1] or 0) + 1)[int(back[1] or 0) :]
                schemas = [self._file.targets[run.target].ledger.schema for run in newest if run.target in self.targets]
                reference = newest[0].id if newest else reference
            found = [run for schema in schemas for run in engine.ledger.find_runs(schema, reference)]
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
    def engine(self, *, read_only: bool, wait: timedelta = LOOK_WAIT, on_step: OnStep = _silent) -> Iterator[Engine]:
        """Open the database for one call and let go of it; `wait` is for another process that holds it."""
        connection = self._file.connection
        module = importlib.import_module(ENGINES[connection.engine])
        if self._connection is not None:
            engine: Engine = module.adopt(self._connection, connection.shown)
        else:
            engine = module.connect(
                connection, read_only=read_only, wait=wait, on_wait=lambda found: self._on_wait(on_step, found)
            )
        self._engine = engine
        if self._is_interrupted:
            engine.interrupt()
        try:
            yield engine
        finally:
            self._engine = None
            self._is_interrupted = False
            engine.close()

    def _on_wait(self, on_step: OnStep, found: str) -> None:
        on_step(f"waiting: {found}")
        if self._is_interrupted:
            from reslice.errors import Interrupted

            failure = Failure("interrupted", "to stop", ("it was waiting for the database",), SAME_AGAIN)
            raise Interrupted("interrupted", [failure], unchanged=UNTOUCHED)


class TargetHandle:
    """One target of a project: plan, run and verify it."""

    def __init__(self, project: Project, contract: Contract) -> None:
        self.project = project
        self.contract = contract

    def plan(
        self,
        range: str | Range | None = None,
        *,
        interval: tuple[str, str] | None = None,
        again: str | None = None,
        with_affected: bool = False,
        rewrite: bool = False,
        on_step: OnStep | None = None,
    ) -> Run:
        """Return what a run would change; nothing is written. A broken contract is Refused, a guard is only shown."""
        from reslice.run import plan

        scope = self._scope("plan", range, interval, again)
        options = Options(rewrite=rewrite, with_affected=with_affected)
        with self._engine(None, on_step, read_only=True) as engine:
            return plan(engine, self.contract, scope, options, on_step or _silent)

    def plan_file(self, plan: Run) -> PlanFile:
        """Return a plan of this target as a file's content, for a review: `.write(path)`, then `run(approve=…)`."""
        from reslice.plan_file import of

        return of(plan, self.contract)

    def run(
        self,
        range: str | Range | None = None,
        *,
        interval: tuple[str, str] | None = None,
        again: str | None = None,
        approve: str | PlanFile | None = None,
        allow: Sequence[str] = (),
        reason: str = "",
        rewrite: bool = False,
        per_slice: bool = False,
        with_affected: bool = False,
        wait: timedelta | None = None,
        on_step: OnStep | None = None,
        on_opened: OnOpened | None = None,
    ) -> Run:
        """Publish what differs, in one commit (`per_slice`: one per slice), or raise with the table as it was.

        `allow` names guards (`empty_slice=2026-01-02`) and needs a `reason`. `approve` is a stopped run or a plan file,
        and publishes exactly its diff. `rewrite` writes the slices even when nothing differs. `on_opened` is called
        once, with what is known of the run when it stands in the ledger.
        """
        from reslice import lineage
        from reslice.run import run

        approval, approved_range = self._approval(approve, wait)
        scope = self._scope("run", range, interval, again, approved_range, wait=wait)
        allowed = consents.read(allow, reason, self.contract, scope)
        contract = self.contract
        if wait is not None:
            contract = replace(contract, timeouts=replace(contract.timeouts, wait=wait))
        request = Request(
            contract, scope, Kind.RUN, allowed, _sayable(reason), _actor(), approval.name if approval else ""
        )
        options = Options(rewrite=rewrite, per_slice=per_slice, with_affected=with_affected, approval=approval)

        def work(told: lineage.Told) -> Run:
            with self._engine(wait, on_step, read_only=False) as engine:

                def opened(known: Run) -> None:
                    told(known, lambda: engine.ledger.find_runs(contract.ledger.schema, str(known.id)))
                    if on_opened is not None:
                        on_opened(known)

                return run(engine, request, options, on_step or _silent, opened)

        return lineage.followed(work, self.project._file.connection)

    def verify(
        self,
        range: str | Range | None = None,
        *,
        interval: tuple[str, str] | None = None,
        again: str | None = None,
        record: bool = False,
        on_step: OnStep | None = None,
    ) -> Run:
        """Return whether the source repeats and the target equals it; `record` adds the answer to the ledger."""
        from reslice.verify import verify

        scope = self._scope("verify", range, interval, again)
        request = Request(self.contract, scope, Kind.VERIFY, actor=_actor()) if record else None
        with self._engine(None, on_step, read_only=not record) as engine:
            return verify(engine, self.contract, scope, on_step or _silent, request=request)

    @contextmanager
    def _engine(self, wait: timedelta | None, on_step: OnStep | None, *, read_only: bool) -> Iterator[Engine]:
        waited = self.contract.timeouts.wait if wait is None else wait
        with self.project.engine(read_only=read_only, wait=waited, on_step=on_step or _silent) as engine:
            yield engine

    def _scope(
        self,
        verb: str,
        range: str | Range | None,
        interval: tuple[str, str] | None,
        again: str | None,
        approved: str | None = None,
        *,
        wait: timedelta | None = None,
    ) -> Scope:
        """Return the slices that exactly one of RANGE, interval, a recorded run or an approval names."""
        given = [each for each in (range, interval, again, approved) if each is not None]
        if len(given) != 1:
            asked = "exactly one of RANGE, --interval, --again and --approve"
            found = f"{len(given)} are given" if given else "none is given"
            raise _misused("usage", self.contract.name, asked, found, f"reslice {verb} --help")
        if isinstance(range, Range):
            return Scope.of(range)
        try:
            if interval is not None:
                return Scope.of(ranges.parse_interval(*interval, self.contract.slice))
            text = range or approved or (self._recorded(again, wait).range_text if again is not None else "")
            return Scope.parse(text, self.contract.slice)
        except ResliceError as error:
            error.failures = tuple(self._with_command(verb, failure) for failure in error.failures)
            raise

    def _with_command(self, verb: str, failure: Failure) -> Failure:
        """Return a failure of a range with the command that takes its RANGE; `ranges` knows no command."""
        if not failure.kind.startswith("range_"):
            return failure
        if not failure.next:
            return replace(failure, next=f"reslice {verb} --help")
        words = ["reslice", verb, shlex.quote(self.contract.name), shlex.quote(failure.next)]
        return replace(failure, next=" ".join(words))

    def _recorded(self, reference: str, wait: timedelta | None) -> LedgerRun:
        recorded = self.project.show(reference, target=self.contract.name, wait=wait)
        if recorded.target != self.contract.name:
            found = f"{recorded.id} is a run of {recorded.target}"
            after = f"reslice history {shlex.quote(self.contract.name)}"
            raise _misused("usage", self.contract.name, "a run of this target", found, after)
        return recorded

    def _approval(self, approve: str | PlanFile | None, wait: timedelta | None) -> tuple[Approval | None, str | None]:
        """Return what was approved, and its range; a run can be approved when it was stopped."""
        if approve is None:
            return None, None
        if not isinstance(approve, str):
            if approve.target != self.contract.name:
                found = f"the plan file is of {approve.target}"
                raise _misused("usage", self.contract.name, "a plan of this target", found, "reslice run FILE")
            name = f"the plan file of {approve.created_at:%Y-%m-%d %H:%M:%S} UTC"
            guards = frozenset(approve.guards)
            plan = Approval(name, approve.contract_digest, approve.base, approve.staged, approve.columns, guards)
            return plan, approve.scope_text
        run = self._recorded(approve, wait)
        if run.state != "stopped" or run.fingerprint_base is None or run.fingerprint_staged is None:
            after = command("plan", run.target, Scope.parse(run.range_text, self.contract.slice))
            failure = Failure("approval_stale", "a run that a guard stopped", (f"{run.id} is {run.state}",), after)
            about = f"{run.target}, approved by {run.id}"
            raise Refused(about, [failure], unchanged=f"{self.contract.table} is as it was")
        base, staged = Fingerprint.parse(run.fingerprint_base), Fingerprint.parse(run.fingerprint_staged)
        guards = frozenset(each.name for each in run.checks if not each.ok)
        return Approval(run.id, run.contract_digest, base, staged, run.columns, guards), run.range_text


def _unknown_run(reference: str, found: Sequence[LedgerRun]) -> Misused:
    """Return the error that says which runs a reference matched, or that it matched none."""
    matched = ", ".join(f"{run.id} of {run.target}" for run in found)
    words = f"{reference!r} matches {len(found)} runs: {matched}" if found else f"no run matches {reference!r}"
    asked = "a RUN is an id such as r-0042, the unique beginning of one, last, or last~1"
    return _misused("run_unknown", f"the run {reference}", asked, words, "reslice history")


def _actor() -> str:
    """Return who runs this, as `user@host`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return _sayable(f"{user}@{socket.gethostname()}")


def _sayable(text: str) -> str:
    """Return text that every database can hold: what a shell gave that is no UTF-8 becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _misused(kind: str, about: str, asked: str, found: str, after: str) -> Misused:
    return Misused(about, [Failure(kind, asked, (found,), after)], unchanged=UNTOUCHED)
