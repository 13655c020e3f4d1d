"""The source for a table of which nothing but itself is known: over the table it seems to come from, or over none.

A guess by names is held against the rows: one slice is computed with it and compared, as a plan does. One that meets
no group of the target is no guess worth writing. A table that is an aggregate itself agrees with the target whether
or not both are right: it comes last, and is never said to bear anything out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reslice.contract import Contract, Unit
from reslice.engines import sources
from reslice.engines.base import Engine
from reslice.engines.sources import Skeleton
from reslice.errors import ResliceError
from reslice.init.draft import Draft, Proposal
from reslice.layout import counted
from reslice.ranges import Scope
from reslice.run import Options, plan
from reslice.tables import Family, Target
from reslice.values import Counts

_TRIED = 6
"""So many tables at most are tried, those first whose columns tell most."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The text of a source and what is not sure about it; `table` is None where none was found."""

    text: str
    table: str | None
    unsure: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Tried:
    """A source that was held against the rows; `aggregate` says why its table seems to be one itself, if it does."""

    skeleton: Skeleton
    counts: Counts | None
    aggregate: str

    @property
    def rank(self) -> tuple[bool, int]:
        """What makes it the better guess: tables of facts first, then how many groups agree."""
        return not self.aggregate, self.counts.unchanged if self.counts is not None else 0


def guess(engine: Engine, target: Target, proposal: Proposal, name: str, taken: Mapping[str, str]) -> Guess:
    """Return the source that computes the newest slice best, or one that says which table is missing.

    `taken` maps the full names of tables that targets fill already to those targets.
    """
    grain = [column.name for column in proposal.grain]
    measures = [measure.name for measure in proposal.measures]
    slice_of = (proposal.slice.column, proposal.slice.unit)
    tried: list[_Tried] = []
    for skeleton in sources.candidates(target, grain, measures, slice_of, engine.survey.relations())[:_TRIED]:
        found = _compared(engine, proposal, name, target, skeleton) if proposal.newest else None
        if (found is not None and found.unchanged + found.changed) or not proposal.newest:
            tried.append(_Tried(skeleton, found, _aggregate(engine, skeleton, proposal.slice.unit, taken)))
    if not tried:
        missing = sources.placeholder_name(target)
        doubt = (
            f"source: which table {target.table} is computed from is not known; {missing} stands in its place, and a"
            " plan stops there until you name the real one"
        )
        return Guess(sources.placeholder(target, grain, measures, proposal.slice.column), None, (doubt,))
    best = max(tried, key=lambda each: each.rank)
    return Guess(best.skeleton.text, best.skeleton.table, tuple(_doubts(best, proposal)))


def _aggregate(engine: Engine, skeleton: Skeleton, unit: Unit, taken: Mapping[str, str]) -> str:
    """Say why the table of a guess seems to be an aggregate itself; empty where it does not."""
    relation = skeleton.relation
    if relation.resolved in taken:
        return f"it is what the target {taken[relation.resolved]} fills"
    if skeleton.has_counts:
        return "it has the same measures, counts among them"
    day = relation.column(skeleton.keys[0])
    if unit is not Unit.DAY or day.family in (Family.TIMESTAMP, Family.TIMESTAMPTZ):
        values = engine.survey.profile(relation).columns[day.name].slices
        if values is None or unit not in values.units:
            return ""
    found = engine.survey.count_keys(relation, day.name, [skeleton.keys])
    return f"it has one row per {', '.join(skeleton.keys)}" if found.rows == found.keys[0] > 1 else ""


def _compared(engine: Engine, proposal: Proposal, name: str, target: Target, skeleton: Skeleton) -> Counts | None:
    """Return how the newest slice of the target stands to what a source computes; None when it cannot be compared."""
    draft = Draft(name, _quoted(target), proposal, skeleton.text, "the guess", proposal.newest, "")
    try:
        scope = Scope.parse(proposal.newest, proposal.slice)
        found = plan(engine, _lenient(draft.contract()), scope, Options(), lambda _step: None)
    except ResliceError:
        return None
    return found.diff.counts if found.diff is not None else None


def _lenient(contract: Contract) -> Contract:
    """Return the contract with measures that may be anything: what is not known yet is NULL."""
    measures = tuple(replace(each, minimum=None, nulls_allowed=True) for each in contract.measures)
    return replace(contract, measures=measures)


def _quoted(target: Target) -> str:
    return ".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in (target.catalog, target.schema, target.table))


def _doubts(tried: _Tried, proposal: Proposal) -> list[str]:
    """Say that it is a guess, and how far the rows bear it out."""
    best, counts = tried.skeleton, tried.counts
    text = f"source: {best.table} is a guess from the names of its columns"
    if tried.aggregate:
        told = f"{text}, and seems to be an aggregate itself: {tried.aggregate}"
        doubts = [f"{told}; that both agree proves nothing, so name the table that both are computed from"]
    elif counts is None:
        doubts = [f"{text}, and no row bears it out; read every expression"]
    else:
        groups = counts.unchanged + counts.changed + counts.removed
        all_same = counts.unchanged == groups and not counts.added
        verdict = "which bears it out" if all_same else "so read every expression"
        same = f"{counts.unchanged} of {counted(groups, 'group')} as the table has {'it' if groups == 1 else 'them'}"
        more = f" and {counts.added} more" if counts.added else ""
        doubts = [f"{text}; for {proposal.newest} it gives {same}{more}, {verdict}"]
    if best.unknown:
        doubts.append(f"source: how {', '.join(best.unknown)} is computed is not known; it is NULL until you write it")
    return doubts
