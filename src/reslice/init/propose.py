"""From what a database says of a table to the parts of a contract: stamps, slice, grain, measures, each with why.

Nothing is decided in silence: a choice that the keys and rows do not settle is among `unsure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reslice.contract import GrainColumn, Method, Stamp, StampValue
from reslice.engines.base import Engine, Support
from reslice.errors import Failure, Misused
from reslice.init.draft import DraftMeasure, Hints, Proposal, Why
from reslice.init.keys import grain_of
from reslice.init.names import is_amount, is_count, is_plural, is_stamp_id, is_stamp_time, may_be_negative
from reslice.init.slices import SliceChoice, candidates, choose
from reslice.layout import counted
from reslice.profile import ColumnProfile, Profile
from reslice.tables import Column, Family, Fill, Target

_FLOAT_SCALE = 2
_FLOAT_SCALE_MOST = 6
_NO_TYPE = "its type has no exact comparable value, so no contract can name it"


@dataclass(slots=True)
class _Parts:
    """What is settled so far."""

    columns: list[Column]
    stamps: list[Stamp] = field(default_factory=list)
    left_out: list[Why] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)


def propose(engine: Engine, target: Target, hints: Hints | None = None) -> Proposal:
    """Return the contract that a live table suggests, with what an existing write says of it.

    Raises Misused[nothing_to_draft] when no column could decide a slice.
    """
    known = hints or Hints()
    profile = engine.survey.profile(target)
    keys = [key for key in target.keys if key <= {column.name for column in target.columns}]
    parts = _Parts([])
    _sort(target, known, parts)
    slice_choice = _slice(target, profile, keys, known, parts)
    # Several dates in one key: the slice is one of them, the others are part of the grain.
    parts.stamps = [each for each in parts.stamps if each.column != slice_choice.slice.column]
    grain = grain_of(engine.survey, target, parts.columns, profile, slice_choice.slice, known)
    rest = [column for column in parts.columns if column.name not in grain.columns]
    measures = tuple(_measure(column, profile, known, parts.unsure) for column in rest)
    return Proposal(
        grain=tuple(_grain_column(name, profile, slice_choice, parts.unsure) for name in grain.columns),
        grain_why=grain.why,
        slice=slice_choice.slice,
        slice_why=slice_choice.why,
        measures=measures,
        stamps=tuple(parts.stamps),
        left_out=tuple(parts.left_out),
        newest=slice_choice.newest,
        unsure=(*slice_choice.unsure, *grain.unsure, *parts.unsure, *_no_measures(measures)),
        method=Method.MERGE if _needs_merge(engine, target) else Method.REPLACE_SLICE,
        method_why=f"foreign keys of {', '.join(target.referenced_by)} point at it" if target.referenced_by else "",
    )


def _sort(target: Target, known: Hints, parts: _Parts) -> None:
    """Tell the columns that the database or reslice fills from those that a source computes."""
    keyed = frozenset().union(*target.keys)
    for column in target.columns:
        is_written = known.columns is not None and column.name in known.columns
        if column.fill is not Fill.PLAIN and not (is_written and column.fill is Fill.IDENTITY):
            parts.left_out.append(Why(column.name, f"the database fills it: {column.fill}"))
        elif column.family is Family.OTHER:
            parts.left_out.append(Why(column.name, f"{column.type}: {_NO_TYPE}"))
            parts.unsure.append(
                f"{column.name} is {column.type}; {_NO_TYPE}: a plan refuses the table while it is there"
            )
        elif not _stamped(column, keyed, known, is_written, parts):
            parts.columns.append(column)


def _stamped(column: Column, keyed: frozenset[str], known: Hints, is_written: bool, parts: _Parts) -> bool:
    """Take a column for a stamp where name and type say so, and no key and no existing write says otherwise."""
    name = column.name
    is_clock = name in known.clocks
    if name in keyed or (is_written and not is_clock):
        return False
    if column.family in (Family.TIMESTAMP, Family.TIMESTAMPTZ) and (is_clock or is_stamp_time(name)):
        parts.stamps.append(Stamp(name, StampValue.RUN_TIME))
        if not is_clock:
            parts.unsure.append(
                f"{name} is taken for the time of the run, by its name; a time of the source is a measure"
            )
    elif column.family is Family.TEXT and is_stamp_id(name):
        parts.stamps.append(Stamp(name, StampValue.RUN_ID))
        parts.unsure.append(f"{name} is taken for the id of the run, by its name; reslice will write r-0001 and so on")
    else:
        if is_stamp_id(name) or is_clock:
            parts.unsure.append(f"{name} looks like a stamp, but {column.type} holds neither a time nor an id of a run")
        return False
    return True


def _slice(
    target: Target, profile: Profile, keys: Sequence[frozenset[str]], known: Hints, parts: _Parts
) -> SliceChoice:
    """Choose the column that decides the slice: the one the write names, else the likeliest."""
    key = next(iter(keys), frozenset())
    # A stamp that alone is a time may still be the slice of a table that is cut by load time.
    stamped = [target.column(stamp.column) for stamp in parts.stamps]
    found = candidates(parts.columns, profile, key) or candidates(stamped, profile, key)
    if known.slice is not None and known.slice in {column.name for column in target.columns}:
        found = [known.slice, *(name for name in found if name != known.slice)]
    if not found:
        types = ", ".join(f"{column.name} {column.type}" for column in target.columns)
        failure = Failure(
            "nothing_to_draft",
            "a column that decides the slice: a date, a timestamp, ISO text, or an integer yyyymmdd",
            (f"{target.resolved} has none: {types}",),
            "reslice init --help",
        )
        raise Misused(target.table, [failure], unchanged="nothing was written")
    chosen = target.column(found[0])
    if chosen in stamped:
        parts.columns.append(chosen)
        parts.columns.sort(key=target.columns.index)
    choice = choose(chosen, profile, known.unit, known.timezone)
    doubts = list(choice.unsure)
    others = [name for name in found[1:] if name not in key]
    if others and known.slice is None and chosen.name not in key:
        doubts.insert(0, f"slice: {chosen.name} decides it; {_listed(others)} could as well")
    why = known.slice_why or choice.why
    return replace(choice, why=why, unsure=tuple(doubts))


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _grain_column(name: str, profile: Profile, choice: SliceChoice, unsure: list[str]) -> GrainColumn:
    found = profile.columns.get(name)
    nulls = found.nulls if found is not None else 0
    if nulls and name == choice.slice.column:
        unsure.append(f"{_of(nulls, profile)} without {name}: such a row belongs to no slice, and stays as it is")
        nulls = 0
    elif nulls:
        unsure.append(f"grain: {name} is NULL in {_of(nulls, profile)}; NULL is kept as a key of its own")
    return GrainColumn(name, nulls_allowed=nulls > 0)


def _measure(column: Column, profile: Profile, known: Hints, unsure: list[str]) -> DraftMeasure:
    """Propose what is true of the rows and likely to stay so."""
    found = profile.columns.get(column.name, ColumnProfile(column))
    reasons = []
    minimum = None
    is_count = column.name in known.counts or is_count_of(column)
    if column.family.is_number and (is_count or not may_be_negative(column.name)):
        if found.lowest is not None and found.lowest >= 0:
            never = f"never below 0 in {_sampled(profile)}{counted(profile.rows_counted, 'row')}"
            minimum = 0 if is_count or _is_how_much(column) else None
            reasons.append(never if minimum == 0 else f"{never}, and its name does not say that it cannot be")
        elif found.lowest is None and column.name in known.counts:
            minimum = 0
            reasons.append("a count")
    if found.nulls:
        reasons.append(f"NULL in {_of(found.nulls, profile)}")
    scale = _scale(column, found, profile, reasons, unsure) if column.family is Family.FLOAT else None
    return DraftMeasure(column.name, minimum, found.nulls > 0, scale, "; ".join(reasons))


def _of(rows: int, profile: Profile) -> str:
    """Say how many rows, and of how many where it is a sample that they are of."""
    text = counted(rows, "row")
    return f"{text} of a sample of {profile.rows_counted}" if profile.is_estimated else text


def _sampled(profile: Profile) -> str:
    return "a sample of " if profile.is_estimated else ""


def _is_how_much(column: Column) -> bool:
    """Whether a column says how much or how many, by name: it never falls below zero."""
    return is_amount(column.name) or (column.family is Family.INTEGER and is_plural(column.name))


def is_count_of(column: Column) -> bool:
    """Whether a column counts rows, by type and name."""
    return column.family is Family.INTEGER and is_count(column.name)


def _scale(column: Column, found: ColumnProfile, profile: Profile, reasons: list[str], unsure: list[str]) -> int:
    """Return the digits of a float that count: at least two, since sums of today may be whole by chance."""
    if found.scale is not None:
        reasons.append(f"{found.scale} digits behind the point seen" if found.scale else "whole so far")
        return max(found.scale, _FLOAT_SCALE)
    if profile.rows_counted > found.nulls:
        unsure.append(f"{column.name}: {column.type} with more than 6 digits; those behind the 6th are not compared")
        return _FLOAT_SCALE_MOST
    unsure.append(f"{column.name}: {column.type}, and no value shows its digits; scale {_FLOAT_SCALE} is a guess")
    return _FLOAT_SCALE


def _no_measures(measures: Sequence[DraftMeasure]) -> list[str]:
    return [] if measures else ["no column is left for a measure; a contract needs one: take one out of the grain"]


def _needs_merge(engine: Engine, target: Target) -> bool:
    """Whether foreign keys point at the target, whose rows then cannot be deleted, and merge can do without."""
    return bool(target.referenced_by) and engine.methods[Method.MERGE].support is Support.YES
