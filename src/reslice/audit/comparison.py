"""Two ranges side by side: the one whose rows are removed, and the one whose rows are written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reslice.audit.predicates import Range
from reslice.audit.values import CLOCK, Value


class Effect(StrEnum):
    """What becomes of rows when the two ranges differ."""

    DOUBLES = "doubles"  # rows are written that were not removed before
    LOSES = "loses"  # rows are removed that are not written again
    UNSURE = "unsure"  # it depends on what the placeholders hold


@dataclass(frozen=True, slots=True)
class Difference:
    """One end at which the ranges differ: `low`, `high`, or `all` where it is a list."""

    end: str
    effect: Effect


def differences(removed: Range, written: Range) -> list[Difference]:
    """Return how the range that is written differs from the one that is removed; nothing when they are equal."""
    found = _differences(removed, written)
    if found and (removed.is_nameless or written.is_nameless):
        return [Difference("all", Effect.UNSURE)]
    return found


def _differences(removed: Range, written: Range) -> list[Difference]:
    if removed.values is not None or written.values is not None:
        return _of_lists(removed, written)
    if removed.parts or written.parts:
        return _of_parts(removed, written)
    if _is_none(removed) or _is_none(written):
        effect = Effect.LOSES if _is_none(written) else Effect.DOUBLES
        return [] if _is_none(removed) and _is_none(written) else [Difference("all", effect)]
    found = [("low", _low(removed, written)), ("high", _high(removed, written))]
    return [Difference(end, effect) for end, effect in found if effect is not None]


def _is_none(each: Range) -> bool:
    """Whether a range ends before it begins, so that nothing is in it."""
    length = each.high.minus(each.low) if each.high is not None and each.low is not None else None
    return length is not None and (length < 0 or (length == 0 and not each.is_high_closed))


def _of_parts(removed: Range, written: Range) -> list[Difference]:
    """Compare what is said by year, month and so on: fewer parts are more days."""
    is_only_parts = {removed.low, removed.high, written.low, written.high} == {None}
    if removed.parts == written.parts and is_only_parts:
        return []
    if is_only_parts and written.parts < removed.parts:
        return [Difference("all", Effect.DOUBLES)]
    if is_only_parts and removed.parts < written.parts:
        return [Difference("all", Effect.LOSES)]
    return [] if removed.parts == written.parts else [Difference("all", Effect.UNSURE)]


def _of_lists(removed: Range, written: Range) -> list[Difference]:
    before, after = removed.values, written.values
    if before == after:
        return []
    if before is None or after is None or {key[0] for key in before | after} != {""}:
        return [Difference("all", Effect.UNSURE)]
    found = []
    if after - before:
        found.append(Difference("all", Effect.DOUBLES))
    if before - after:
        found.append(Difference("all", Effect.LOSES))
    return found


def _low(removed: Range, written: Range) -> Effect | None:
    before, after = removed.low, written.low
    if before is None or after is None:
        return _missing(before, after)
    later = after.minus(before)
    if later is None:
        return None if after.base == CLOCK else Effect.UNSURE  # a clock in a query is a fault of its own
    if later == 0 and removed.is_low_open != written.is_low_open:
        return Effect.DOUBLES if removed.is_low_open else Effect.LOSES
    return None if later == 0 else Effect.LOSES if later > 0 else Effect.DOUBLES


def _missing(before: Value | None, after: Value | None) -> Effect | None:
    if before is None and after is None:
        return None
    if before is None:
        return None if after is not None and after.base == CLOCK else Effect.LOSES
    return Effect.DOUBLES


def _high(removed: Range, written: Range) -> Effect | None:
    """Compare the ends. A time up to and with a day may mean its first moment or all of the day."""
    before, after = removed.high, written.high
    if before is None or after is None:
        return _missing(before, after)
    later = after.minus(before)
    if later is None:
        return None if after.base == CLOCK else Effect.UNSURE
    if removed.is_high_closed == written.is_high_closed:
        return None if later == 0 else Effect.DOUBLES if later > 0 else Effect.LOSES
    if written.is_high_closed:
        if written.also is not None and written.also.minus(before) == 0:
            return None
        return Effect.DOUBLES if later >= 0 else Effect.LOSES
    return Effect.DOUBLES if later > 0 else Effect.LOSES
