"""A series before and after a run as a picture: figures become places, and nothing else is made of them.

A few slices are a pair of bars each, many are two lines. Before is dashed and hollow, after solid and filled, so that
they are told apart without colour; lines that lie on each other are drawn once. What is not known is left out, and
marked below the axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from reslice.series import Amount, Point
from reslice.studio.pages import number

BARS_MAX = 31
"""So many slices at most are drawn as pairs of bars: a month of days."""
_TICKS = 5
_AROUND_MIN = 7
_LABEL_MAX = 14
_CHARACTER = 6.7
"""How wide a digit of the labels is, in units of the picture."""


_Pair = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the figures are drawn: the size of the picture, what its axes leave, and what they mean."""

    width: int
    height: int
    left: float
    low: float
    high: float
    slots: int

    @property
    def right(self) -> float:
        """Where the last slice ends."""
        return self.width - 12

    @property
    def bottom(self) -> float:
        """Where the axis of the slices lies."""
        return self.height - 46

    def x(self, place: float) -> float:
        """Return where a place among the slices lies; 0 is where the first begins."""
        return round(self.left + (self.right - self.left) * place / self.slots, 2)

    def y(self, value: float) -> float:
        """Return how high a figure lies."""
        top = 14
        return round(self.bottom - (self.bottom - top) * (value - self.low) / (self.high - self.low), 2)


def picture(points: Sequence[Point], *, width: int, height: int) -> dict[str, Any]:
    """Return everything a template draws: axes, bars or lines, and marks below those slices that moved."""
    sides = [(_value(point.before), _value(point.after)) for point in points]
    known = [value for pair in sides for value in pair if value is not None]
    is_bars = len(points) <= BARS_MAX
    is_whole = all(isinstance(side.total, int | None) for point in points for side in (point.before, point.after))
    ticks = round_ticks(min([0.0, *known]), max([0.0, *known]), is_whole=is_whole)
    labels = [_label(tick) for tick in ticks]
    left = 16 + _CHARACTER * max(map(len, labels))
    frame = Frame(width, height, left, float(ticks[0]), float(ticks[-1]), max(1, len(points)))
    slot, wide = _widths(frame)
    margin = slot / 2 - wide - 1 if is_bars else 0.0
    return {
        "width": width,
        "height": height,
        "left": frame.left,
        "right": frame.right,
        "bottom": frame.bottom,
        "zero": frame.y(0),
        "is_dense": len(points) > width,
        "ticks": [{"y": frame.y(float(tick)), "label": label} for tick, label in zip(ticks, labels, strict=True)],
        "slices": list(_slices(frame, [point.slice for point in points])),
        "bars": list(_bars(frame, points, sides)) if is_bars else [],
        "before": "" if is_bars else _line(frame, _where_it_differs(sides)),
        "after": "" if is_bars else _line(frame, [after for _, after in sides]),
        "moved": list(_marks(frame, [point.moved for point in points], margin=margin)),
        "unknown": list(_marks(frame, [None in pair for pair in sides], margin=margin)),
    }


def round_ticks(low: float, high: float, *, is_whole: bool) -> list[Decimal]:
    """Return round figures, the same step apart, from at most `low` to at least `high`: steps of 1, 2 or 5."""
    span = high - low or 1.0
    exponent = Decimal(1).scaleb(math.floor(math.log10(span / _TICKS)))
    step = next(exponent * factor for factor in (1, 2, 5, 10) if float(exponent * factor) * _TICKS >= span)
    if is_whole:
        step = max(step, Decimal(1))
    first, last = math.floor(low / float(step)), max(math.ceil(high / float(step)), 1 if low == high else 0)
    return [place * step for place in range(first, last + 1)]


def _label(tick: Decimal) -> str:
    text = number(tick)
    return text if len(text) <= _LABEL_MAX else f"{tick:.3g}"


def _value(amount: Amount) -> float | None:
    """Return what is drawn of one side; None where it is not known, or is no number that can be drawn."""
    if not amount.is_known:
        return None
    value = float(amount.total or 0)
    return value if math.isfinite(value) else None


def _slices(frame: Frame, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the labels of slices that have room below the axis, evenly spread from the first on."""
    if not labels:
        return
    room = _CHARACTER * max(map(len, labels)) + 24
    stride = max(1, math.ceil(len(labels) * room / (frame.right - frame.left)))
    for place in range(0, len(labels), stride):
        x = frame.x(place + 0.5)
        is_whole = x + room / 2 - 12 <= frame.width
        if is_whole or place == 0:
            yield {"x": x, "label": labels[place]}


def _bars(frame: Frame, points: Sequence[Point], sides: Sequence[_Pair]) -> Iterator[dict[str, Any]]:
    """Yield a pair of bars for each slice, of those sides that are known."""
    slot, wide = _widths(frame)
    for place, (point, pair) in enumerate(zip(points, sides, strict=True)):
        middle = frame.left + slot * (place + 0.5)
        for side, value in zip(("before", "after"), pair, strict=True):
            if value is None:
                continue
            top, bottom = sorted((frame.y(value), frame.y(0)))
            x = middle - wide - 1 if side == "before" else middle + 1
            shown = {"x": round(x, 2), "y": top, "width": round(wide, 2), "height": round(bottom - top, 2)}
            yield shown | {"side": side, "slice": point.slice, "total": getattr(point, side).total or 0}


def _where_it_differs(sides: Sequence[_Pair]) -> list[float | None]:
    """Return the figures before, of those slices that have another one after, and of their neighbours."""
    differs = [before != after for before, after in sides]
    near = (any(differs[max(0, place - 1) : place + 2]) for place in range(len(sides)))
    return [before if is_near else None for (before, _), is_near in zip(sides, near, strict=True)]


def close_up(points: Sequence[Point]) -> Sequence[Point]:
    """Return the slices that moved with those around them; none where that is about the whole, or nothing moved."""
    places = [place for place, point in enumerate(points) if point.moved]
    if not places or len(points) <= BARS_MAX:
        return ()
    around = max(_AROUND_MIN, places[-1] - places[0])
    near = points[max(0, places[0] - around) : places[-1] + around + 1]
    return near if len(near) * 2 <= len(points) else ()


def _widths(frame: Frame) -> tuple[float, float]:
    """Return how wide the place of a slice is, and one of its two bars."""
    slot = (frame.right - frame.left) / frame.slots
    return slot, min(slot * 0.36, 28)


def _line(frame: Frame, values: Sequence[float | None]) -> str:
    """Return the path of one side, with a gap where a slice is not known."""
    path: list[str] = []
    begins = True
    for place, value in _thinned(values, columns=round(frame.right - frame.left)):
        if value is None:
            begins = True
            continue
        spot = f"{frame.x(place + 0.5):g} {frame.y(value):g}"
        path.append(f"M{spot}L{spot}" if begins else f"L{spot}")
        begins = False
    return "".join(path)


def _thinned(values: Sequence[float | None], *, columns: int) -> Iterator[tuple[int, float | None]]:
    """Yield the figures that are seen: of those that share a column of the picture, the lowest and the highest."""
    size = max(1, len(values) // columns)
    for first in range(0, len(values), size):
        some = list(enumerate(values[first : first + size], start=first))
        known = [(value, place) for place, value in some if value is not None]
        if size == 1 or len(known) < len(some):
            yield from some
            continue
        yield from sorted({(place, value) for value, place in (min(known), max(known))})


def _marks(frame: Frame, are: Sequence[bool], *, margin: float) -> Iterator[dict[str, float]]:
    """Yield a mark for each stretch of slices of which something is so; none is too narrow to be seen."""
    place = 0
    for is_so, group in groupby(are):
        count = len(list(group))
        if is_so:
            first, last = frame.x(place) + margin, frame.x(place + count) - margin
            yield {"x": round(first, 2), "width": round(max(last - first, 2), 2)}
        place += count
