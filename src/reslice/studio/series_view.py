"""What a measure added up to in each slice of a run, before and after it: drawn, and exact in a table."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from reslice.errors import Interrupted, Misused, Refused
from reslice.project import Project, misused
from reslice.recorded import LedgerRun
from reslice.report_json import exact
from reslice.series import Amount, Point, points, row_points
from reslice.studio.chart import close_up, picture
from reslice.studio.figures import figure
from reslice.studio.values import Ask, View
from reslice.totals import EXACT, is_finite
from reslice.values import Total

SECONDS_MAX = 30
"""How long the rows of a run may be added up for one page."""
SLICES_SHOWN = 366
"""Slices on one page of the table."""
SIZES = {"wide": (1000, 320), "narrow": (380, 260)}
"""How large a picture is drawn for a desk, and for a phone."""


def view(ask: Ask) -> View:
    """Return the series of the measure that the query names, of the rows where it names none."""
    run = ask.project.show(ask.path["run"], target=ask.word("target") or None)
    measure = ask.word("measure")
    if measure and measure not in run.totals:
        has = f"{run.id} has totals of {', '.join(run.totals)}" if run.totals else f"{run.id} has no totals"
        raise misused("usage", f"series of {run.id}", "a measure with a total", has, f"reslice show {run.id}")
    found, trouble = _points(ask.project, run, measure)
    values = {
        "run": run.id,
        "target": run.target,
        "kind": run.kind,
        "state": run.state,
        "range": run.range_text,
        "measure": measure or None,
        "measures": [*run.totals],
        "after": _after_word(run),
        "slices": [_value(point) for point in found],
        "slices_unknown": len([point for point in found if not _is_known(point)]),
        "trouble": trouble,
    }
    return View("series", values, _drawn(ask, run, measure, found))


def _points(project: Project, run: LedgerRun, measure: str) -> tuple[tuple[Point, ...], list[str]]:
    """Return the slices, and why their sums are not known where none is."""
    if not measure:
        return row_points(run), []
    try:
        contract = project.target(run.target).contract
        with _bounded(project), project.engine(read_only=True) as engine:
            return points(engine, contract, run, measure), []
    except (Refused, Misused) as error:  # the contract means something else by now
        return (), [text for failure in error.failures for text in failure.found]
    except Interrupted:
        return (), [f"adding up the rows took longer than {SECONDS_MAX} seconds"]


@contextmanager
def _bounded(project: Project) -> Iterator[None]:
    """Let what is inside be interrupted when it takes too long."""
    clock = threading.Timer(SECONDS_MAX, project.interrupt)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()


def _after_word(run: LedgerRun) -> str:
    """Return what the other side is: what the run left, or what it would have written."""
    is_written = run.rows_after is not None or any(each.fingerprint_after is not None for each in run.slice_rows)
    return "after" if is_written else "recomputed"


def _rows_after(run: LedgerRun) -> int | None:
    return run.rows_staged if run.rows_after is None else run.rows_after


def _is_known(point: Point) -> bool:
    return point.before.is_known and point.after.is_known


def _value(point: Point) -> dict[str, Any]:
    return {
        "slice": point.slice,
        "moved": point.moved,
        "before": _side(point.before),
        "after": _side(point.after),
    }


def _side(amount: Amount) -> dict[str, Any]:
    return {"rows": amount.rows, "total": exact(amount.total), "known": amount.is_known}


def _drawn(ask: Ask, run: LedgerRun, measure: str, found: Sequence[Point]) -> dict[str, Any]:
    moved = [point for point in found if point.moved]
    is_all = ask.word("show") == "all" or not moved
    listed = found if is_all else moved
    pages = max(1, -(-len(listed) // SLICES_SHOWN))
    asked = ask.word("page")
    page = min(int(asked), pages) if re.fullmatch(r"[1-9][0-9]{0,3}", asked) else 1
    first = (page - 1) * SLICES_SHOWN

    def address(number: int, show: str) -> str | None:
        if not 1 <= number <= pages:
            return None
        return ask.links.series(run.id, run.target, measure, show=show, page=str(number) if number > 1 else "")

    shown = "all" if is_all and moved else ""
    return {
        "figure": figure,
        "run_address": ask.links.run(run.id, run.target),
        "target_address": ask.links.target(run.target) if run.target in ask.project.targets else None,
        "choices": [(name, ask.links.series(run.id, run.target, name)) for name in ["", *run.totals]],
        "pictures": [_picture(some) for some in (close_up(found), found) if some],
        "rows": [_row(point) for point in listed[first : first + SLICES_SHOWN]],
        "first": first + 1,
        "listed": len(listed),
        "count": len(found),
        "moved_count": len(moved),
        "is_all": is_all,
        "other_list": address(1, "" if is_all else "all") if 0 < len(moved) < len(found) else None,
        "before_page": address(page - 1, shown),
        "after_page": address(page + 1, shown),
        "total": run.totals.get(measure) or Total(run.rows_before, _rows_after(run)),
    }


def _picture(some: Sequence[Point]) -> dict[str, Any]:
    """Return what is drawn of slices, for a desk and for a phone."""
    return {
        "first": some[0].slice,
        "last": some[-1].slice,
        "count": len(some),
        "moved_count": len([point for point in some if point.moved]),
        "charts": {name: picture(some, width=width, height=height) for name, (width, height) in SIZES.items()},
    }


def _row(point: Point) -> dict[str, Any]:
    before, after = point.before, point.after
    return {
        "slice": point.slice,
        "moved": point.moved,
        "before": before,
        "after": after,
        "difference": _difference(before, after),
    }


def _difference(before: Amount, after: Amount) -> str:
    """Return by how much a slice moved, with its sign; nothing where that is not known or no number."""
    first, last = before.total or 0, after.total or 0
    if not (before.is_known and after.is_known and is_finite(first, last)) or first == last:
        return ""
    moved = EXACT.subtract(Decimal(last), Decimal(first))
    return f"{moved:+f}"
