"""Versions: what `append_version` has kept in the table, and letting go of what is old, on request.

A version that is current is never let go of. One that is not can be restored for as long as it is there.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reslice.attempt import OnOpened, Progress, attempt, blank, tell_nobody
from reslice.contract import Contract, Method
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused
from reslice.ranges import Scope
from reslice.recorded import Pruned, Version
from reslice.values import Kind, Opened, Outcome, Request, Run


def versions(engine: Engine, contract: Contract, scope: Scope | None) -> tuple[Version, ...]:
    """Return the versions in the table, of the slices of `scope` or of all; none before the first run."""
    _refuse_without_versions(contract)
    return engine.ledger.versions(contract, engine.target(contract), scope)


def old_versions(engine: Engine, contract: Contract, scope: Scope | None, older_than: timedelta) -> tuple[Version, ...]:
    """Return those that are not current, and were replaced more than `older_than` ago by the database's clock."""
    before = engine.now() - older_than
    found = versions(engine, contract, scope)
    return tuple(each for each in found if each.is_replaced_before(before))


def scope_of(contract: Contract, old: tuple[Version, ...]) -> Scope:
    """Return the slices that versions are of."""
    first = Scope.parse(old[0].slice, contract.slice)
    return first.plus(Scope.parse(each.slice, contract.slice).hull.start for each in old)


def prune(engine: Engine, request: Request, older_than: timedelta, on_opened: OnOpened = tell_nobody) -> Pruned:
    """Delete the old versions of the request's slices in one commit, or end with the table as it was.

    The ledger has it as a run of its own. The current versions, and so what readers see, are not touched.
    """
    contract = request.contract
    removed: list[Version] = []

    def work(opened: Opened, progress: Progress) -> Run:
        before = engine.now() - older_than
        done = replace(progress.run, outcome=Outcome.PUBLISHED)
        old = engine.ledger.prune_versions(contract, opened.target, request.scope, before, opened, done)
        removed.extend(old)
        return done

    begun = replace(blank("versions", contract, request.scope, Outcome.FAILED), kind=Kind.PRUNE)
    done = attempt(engine, request, begun, work, on_opened)
    return Pruned(tuple(removed), done.id)


def _refuse_without_versions(contract: Contract) -> None:
    if contract.method is not Method.APPEND_VERSION:
        asked = contract.quote("method", f"method: {contract.method}")
        found = "only append_version keeps versions in the table; the rows that others replace are kept by the ledger"
        failure = Failure("usage", asked, (found,), f"reslice history {contract.name}")
        raise Misused(contract.name, [failure], unchanged="nothing was written")
