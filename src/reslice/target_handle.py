"""One target of a project: what the command line does with it, as an API."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from reslice import consents, given, ranges
from reslice.attempt import OnOpened, OnStep, tell_nobody
from reslice.commands import command
from reslice.contract import Contract
from reslice.errors import Failure, Interrupted, Misused, Refused, ResliceError
from reslice.project import Project, actor, misused, sayable, silent
from reslice.ranges import Range, Scope
from reslice.recorded import LedgerRun, Pruned, Version
from reslice.run import Approval, Options
from reslice.values import Fingerprint, Kind, Request, Run

if TYPE_CHECKING:
    from reslice.engines.base import Engine
    from reslice.plan_file import PlanFile
    from reslice.prove.values import Proof


class TargetHandle:
    """One target of a project: plan, run and verify it."""

    def __init__(self, project: Project, contract: Contract) -> None:
        self.project = project
        self.contract = contract

    def plan(
        self,
        range: str | date | Range | None = None,
        *,
        interval: tuple[str | date, str | date] | None = None,
        again: str | None = None,
        with_affected: bool = False,
        rewrite: bool = False,
        on_step: OnStep | None = None,
    ) -> Run:
        """Return what a run would change; nothing is written. A broken contract is Refused, a guard is only shown."""
        from reslice.run import plan

        scope = self._scope("plan", range, interval, again)
        options = Options(rewrite=rewrite, with_affected=with_affected)
        with self._engine(None, on_step, scope, read_only=True) as engine:
            return plan(engine, self.contract, scope, options, on_step or silent)

    def plan_file(self, plan: Run) -> PlanFile:
        """Return a plan of this target as a file's content, for a review: `.write(path)`, then `run(approve=…)`."""
        from reslice.plan_file import of

        return of(plan, self.contract)

    def run(
        self,
        range: str | date | Range | None = None,
        *,
        interval: tuple[str | date, str | date] | None = None,
        again: str | None = None,
        approve: str | PlanFile | None = None,
        allow: str | Sequence[str] = (),
        reason: str = "",
        rewrite: bool = False,
        per_slice: bool = False,
        with_affected: bool = False,
        wait: timedelta | str | None = None,
        on_step: OnStep | None = None,
        on_opened: OnOpened | None = None,
    ) -> Run:
        """Publish what differs, in one commit (`per_slice`: one per slice), or raise with the table as it was.

        `allow` names guards (`empty_slice=2026-01-02`) and needs a `reason`. `approve` is a stopped run or a plan file,
        and publishes exactly its diff. `rewrite` writes the slices even when nothing differs. `on_opened` is called
        once, with what is known of the run when it stands in the ledger.
        """
        from reslice.run import run

        wait = given.wait(wait)
        approval, approved_range = self._approval(approve, wait)
        scope = self._scope("run", range, interval, again, approved_range, wait=wait)
        allowed = consents.read(given.guards(allow), reason, self.contract, scope)
        contract = self.contract
        if wait is not None:
            contract = replace(contract, timeouts=replace(contract.timeouts, wait=wait))
        request = Request(
            contract, scope, Kind.RUN, allowed, sayable(reason), actor(), approval.name if approval else ""
        )
        options = Options(rewrite=rewrite, per_slice=per_slice, with_affected=with_affected, approval=approval)

        def work(engine: Engine, told: OnOpened) -> Run:
            return run(engine, request, options, on_step or silent, told)

        return self._followed(work, scope, wait, on_step, on_opened)

    def _followed(
        self,
        work: Callable[[Engine, OnOpened], Run],
        scope: Scope,
        wait: timedelta | None,
        on_step: OnStep | None,
        on_opened: OnOpened | None,
    ) -> Run:
        """Return what `work` does with the database, and tell whoever listens when it begins and how it ends."""
        from reslice import lineage

        def told_work(told: lineage.Told) -> Run:
            with self._engine(wait, on_step, scope, read_only=False) as engine:

                def opened(known: Run) -> None:
                    schema = self.contract.ledger.schema
                    told(known, lambda: engine.ledger.find_runs(schema, str(known.id)), engine.address)
                    if on_opened is not None:
                        on_opened(known)

                return work(engine, opened)

        return lineage.followed(told_work, self.project._file.connection)

    def status(
        self,
        range: str | date | Range | None = None,
        *,
        interval: tuple[str | date, str | date] | None = None,
        again: str | None = None,
        since: str | datetime | None = None,
        on_step: OnStep | None = None,
    ) -> Run:
        """Return how every slice of the target stands to its source; nothing is written.

        Without a range the slices are those from the first that the target holds to the last that is over. `since`, a
        run or an instant, leaves the slices that corrections since then touch.
        """
        from reslice.status import status

        is_whole = range is None and interval is None and again is None
        scope = None if is_whole else self._scope("status", range, interval, again)
        instant = self._instant(since)
        with self._engine(None, on_step, scope, read_only=True) as engine:
            return status(engine, self.contract, scope, instant, on_step or silent)

    def restore(
        self,
        run: str,
        range: str | date | Range | None = None,
        *,
        reason: str = "",
        wait: timedelta | str | None = None,
        on_step: OnStep | None = None,
        on_opened: OnOpened | None = None,
    ) -> Run:
        """Put back, in one commit, what a run replaced, of its slices in `range`; or raise with the table as it was.

        The restore is a run of its own in the ledger. Slices that hold those rows already are left. Raises Refused when
        a later run or somebody else has written to a slice since, when the table's columns are others, or when the rows
        are not kept any more; Misused[nothing_to_restore] when the run replaced no slice of the range.
        """
        from reslice.restore import restore

        wait = given.wait(wait)
        undone, scope = self._undone(run, range, wait)
        contract = self.contract
        if wait is not None:
            contract = replace(contract, timeouts=replace(contract.timeouts, wait=wait))
        request = Request(contract, scope, Kind.RESTORE, reason=sayable(reason), actor=actor(), restores=undone.id)

        def work(engine: Engine, told: OnOpened) -> Run:
            return restore(engine, request, undone, on_step or silent, told)

        return self._followed(work, scope, wait, on_step, on_opened)

    def plan_restore(self, run: str, range: str | date | Range | None = None, *, on_step: OnStep | None = None) -> Run:
        """Return what a restore would change; nothing is written. What would refuse it is raised."""
        from reslice.restore import plan_restore

        undone, scope = self._undone(run, range, None)
        with self._engine(None, on_step, scope, read_only=True) as engine:
            return plan_restore(engine, self.contract, scope, undone, on_step or silent)

    def versions(self, range: str | date | Range | None = None) -> tuple[Version, ...]:
        """Return the versions that append_version has kept in the table, by slice and then by age."""
        from reslice.old_versions import versions

        scope = None if range is None else self._scope("versions", range, None, None)
        with self._engine(None, None, scope, read_only=True) as engine:
            return versions(engine, self.contract, scope)

    def old_versions(
        self, range: str | date | Range | None = None, *, older_than: timedelta, on_step: OnStep | None = None
    ) -> tuple[Version, ...]:
        """Return the versions that are not current and were replaced more than `older_than` ago."""
        from reslice.old_versions import old_versions

        older_than = given.older_than(older_than)
        scope = None if range is None else self._scope("versions", range, None, None)
        with self._engine(None, on_step, scope, read_only=True) as engine:
            return old_versions(engine, self.contract, scope, older_than)

    def prune_versions(
        self,
        range: str | date | Range | None = None,
        *,
        older_than: timedelta,
        on_step: OnStep | None = None,
        on_opened: OnOpened | None = None,
    ) -> Pruned:
        """Delete the versions that are not current and were replaced more than `older_than` ago, in one commit.

        What readers see is not touched. A version that is gone cannot be restored. It is a run of its own in the
        ledger, unless there is nothing to delete.
        """
        from reslice.old_versions import prune, scope_of

        old = self.old_versions(range, older_than=older_than, on_step=on_step)
        if not old:
            return Pruned(())
        request = Request(self.contract, scope_of(self.contract, old), Kind.PRUNE, actor=actor())
        with self._engine(None, on_step, request.scope, read_only=False) as engine:
            return prune(engine, request, older_than, on_opened or tell_nobody)

    def _undone(self, run: str, range: str | date | Range | None, wait: timedelta | None) -> tuple[LedgerRun, Scope]:
        """Return a run to undo, and its slices that are wanted."""
        from reslice.restore import scope_of

        undone = self._recorded(run, wait)
        if run.startswith("last") and undone.kind == Kind.RESTORE:
            found = f"{run} is {undone.id}, a restore itself; the same command twice would undo it"
            after = f"reslice restore {undone.id}"
            raise misused("usage", run, "a restore is undone by its id", found, after)
        wanted = None if range is None else self._scope("restore", range, None, None)
        return undone, scope_of(self.contract, undone, wanted)

    def _instant(self, since: str | datetime | None) -> datetime | None:
        """Return the instant that a run was requested at, or that a text names in the contract's zone."""
        if since is None:
            return None
        try:
            found = since if isinstance(since, datetime) else datetime.fromisoformat(since)
        except ValueError:
            return self._requested_at(str(since))
        local = found if found.tzinfo else found.replace(tzinfo=ZoneInfo(self.contract.slice.timezone))
        try:
            return local.astimezone(UTC)
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC) if found.year < 2 else datetime.max.replace(tzinfo=UTC)

    def _requested_at(self, reference: str) -> datetime:
        """Return when a run was asked for; Misused when what --since was given is neither that nor a time."""
        try:
            return self._recorded(reference, None).requested_at
        except Misused as error:
            if error.kind != "run_unknown":
                raise
            asked = "--since RUN|TIME: a run, or a time such as 2026-01-02 or 2026-01-02T18:30, in the contract's zone"
            after = f"reslice history {shlex.quote(self.contract.name)}"
            raise misused("run_unknown", self.contract.name, asked, error.failures[0].found[0], after) from error

    def verify(
        self,
        range: str | date | Range | None = None,
        *,
        interval: tuple[str | date, str | date] | None = None,
        again: str | None = None,
        record: bool = False,
        on_step: OnStep | None = None,
    ) -> Run:
        """Return whether the source repeats and the target equals it; `record` adds the answer to the ledger."""
        from reslice.verify import verify

        scope = self._scope("verify", range, interval, again)
        request = Request(self.contract, scope, Kind.VERIFY, actor=actor()) if record else None
        with self._engine(None, on_step, scope, read_only=not record) as engine:
            return verify(engine, self.contract, scope, on_step or silent, request=request)

    def prove(
        self,
        command: Sequence[str] = (),
        range: str | None = None,
        *,
        ignore: Sequence[str] = (),
        on_step: OnStep | None = None,
        **options: Any,
    ) -> Proof:
        """Run a command twice in a copy of the database; return whether it repeats, and whether the table is right.

        `sql` with `parameters` stands for a command; other options are those of `reslice.prove.values.Task`. The
        database itself is only read, unless `in_place` is asked for. Raises Misused[usage] when it cannot be started,
        Refused[sandbox] without a copy, Retryable[command_failed] when the command fails.
        """
        from reslice.prove import asked
        from reslice.prove.proving import Proving

        subject = asked.target_subject(self.contract, range, ignore)
        proving = Proving(self.project._file.connection, subject, asked.task_of(command, **options))
        return proving.prove(on_step)

    @contextmanager
    def _engine(
        self, wait: timedelta | None, on_step: OnStep | None, scope: Scope | None, *, read_only: bool
    ) -> Iterator[Engine]:
        """Open the database; a call that is interrupted before anything is known of its run says what it was for."""
        waited = self.contract.timeouts.wait if wait is None else wait
        try:
            with self.project.engine(read_only=read_only, wait=waited, on_step=on_step or silent) as engine:
                yield engine
        except Interrupted as error:
            if error.run is None:
                about = self.contract.name
                error.about = about if scope is None else f"{about} for {scope.text}, {scope.words}"
            raise

    def _scope(
        self,
        verb: str,
        range: str | date | Range | None,
        interval: tuple[str | date, str | date] | None,
        again: str | None,
        approved: str | None = None,
        *,
        wait: timedelta | None = None,
    ) -> Scope:
        """Return the slices that exactly one of RANGE, interval, a recorded run or an approval names."""
        wanted, ends = given.slices(range), given.interval(interval)
        said = {"range": wanted, "interval": ends, "again": again} | ({"approve": approved} if verb == "run" else {})
        if len([each for each in said.values() if each is not None]) != 1:
            raise given.which_slices(verb, self.contract.name, **said)
        if isinstance(wanted, Range):
            return Scope.of(wanted)
        try:
            if ends is not None:
                return Scope.of(ranges.parse_interval(*ends, self.contract.slice))
            text = wanted or approved or (self._recorded(again, wait).range_text if again is not None else "")
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
            raise misused("usage", self.contract.name, "a run of this target", found, after)
        return recorded

    def _approval(self, approve: str | PlanFile | None, wait: timedelta | None) -> tuple[Approval | None, str | None]:
        """Return what was approved, and its range; a run can be approved when it was stopped."""
        if approve is None:
            return None, None
        if not isinstance(approve, str):
            if approve.target != self.contract.name:
                found = f"the plan file is of {approve.target}"
                raise misused("usage", self.contract.name, "a plan of this target", found, "reslice run FILE")
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
