"""Which slices outside a range corrections touch, and which of them no run has covered since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reslice import ledger
from reslice.contract import Contract
from reslice.engines.session import Session
from reslice.errors import ResliceError
from reslice.ranges import Moment, Range, Scope
from reslice.tables import Target

FIRST_INSTANT = "0001-01-01 00:00:00"
"""Since when corrections are asked for where no run has covered a range: since ever."""

TouchedSince = Callable[[str], list[Moment]]
"""The slices that the contract's affected query names for corrections since an instant, UTC."""


def affected(
    session: Session, where: str, contract: Contract, target: Target, scope: Scope, touched_since: TouchedSince
) -> tuple[Moment, ...]:
    """Return the slices outside `scope` that are touched and not covered since, in order.

    Corrections are asked for since the last run of the whole range; what earlier runs named and left is added.
    """
    since = ledger.last_covering(session, where, target.resolved, scope.hull) or FIRST_INSTANT
    left_since, left = ledger.left_affected(session, where, target.resolved)
    read = (_slices_of(label, contract) for label in left)
    found = {slices.hull.start: left_since for slices in read if slices is not None}
    found |= dict.fromkeys(touched_since(since), since)
    outside = {moment: after for moment, after in found.items() if not scope.contains(moment)}
    if not outside:
        return ()
    hull = Range(scope.unit, scope.zone, min(outside), max(outside))
    coverage = ledger.coverage(session, where, target.resolved, min(since, left_since or since), hull)
    return tuple(sorted(_not_covered(contract, outside, coverage, touched_since)))


def _not_covered(
    contract: Contract,
    found: Mapping[Moment, str],
    coverage: tuple[ledger.Covering, ...],
    touched_since: TouchedSince,
) -> Iterator[Moment]:
    """Yield the slices that no run has covered since, or that corrections have touched after one did."""
    read = ((_slices_of(run.range_text, contract), run.at) for run in coverage)
    scopes = [(slices, at) for slices, at in read if slices is not None]
    touched: dict[str, set[Moment]] = {}
    for moment, since in found.items():
        covered = next((at for each, at in scopes if each.contains(moment)), "")
        if covered > since and covered not in touched:
            touched[covered] = set(touched_since(covered))
        if covered <= since or moment in touched[covered]:
            yield moment


def _slices_of(text: str, contract: Contract) -> Scope | None:
    """Return the slices that a run of the ledger named; None when they are no slices of the contract as it is now."""
    try:
        return Scope.parse(text, contract.slice)
    except ResliceError:  # the unit or the zone was another one then
        return None
