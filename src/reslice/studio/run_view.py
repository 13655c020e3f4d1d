"""One run of the ledger: everything the page says that is kept of a run, and the way to the runs around it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reslice.layout import shown
from reslice.ledger.neighbours import Neighbours, neighbours
from reslice.ledger.overview import Wanted, page_of_runs
from reslice.page import run_values
from reslice.recorded import LedgerRun
from reslice.report_json import show_json
from reslice.report_ledger import state_text
from reslice.studio.figures import figure
from reslice.studio.values import Ask, View, instant
from reslice.values import Change, GroupDiff

if TYPE_CHECKING:
    from reslice.engines.base import Engine
    from reslice.engines.session import Session

GROUPS_SHOWN = 100
"""Groups on one page of the diff."""
RECENT_RUNS = 50
"""The newest runs of a target, of which one can be chosen to be compared with."""
_RUN_ID = re.compile(r"r-\d{4,}")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which groups of a diff are wanted: those with a text in their key, of one kind of change; empty is all."""

    text: str = ""
    change: str = ""
    page: int = 1

    def keeps(self, group: GroupDiff) -> bool:
        """Whether a group is wanted. Upper and lower case are the same; what is looked for is what is shown."""
        if self.change and group.change != self.change:
            return False
        words = (shown(value).casefold() for value in group.key.values())
        return any(self.text.casefold() in each for each in words) if self.text else True


def view(ask: Ask) -> View:
    """Return one run, by its id or whatever else `show` takes; its groups are those that the query asks for."""
    run = ask.project.show(ask.path["run"], target=ask.word("target") or None)
    around, recent = _around(ask, run)
    wanted = _filter(ask)
    filtered = replace(run, groups=tuple(group for group in run.groups if wanted.keeps(group)))
    twin = show_json(filtered, place=ask.place)
    del twin["schema"], twin["exit_code"], twin["error"]
    twin |= {
        "filter": {"text": wanted.text, "change": wanted.change},
        "groups_recorded": len(run.groups),
        "before": None if around.before is None else around.before.id,
        "after": None if around.after is None else around.after.id,
        "later": [_named(each) for each in around.over],
        "later_count": around.over_count,
        "named_by": [_named(each) for each in around.naming],
    }
    values = run_values(filtered, ask.place)
    drawn = values | {
        "frame": "base.html.j2",
        "figure": figure,
        "address": ask.links.run(run.id, run.target) or "",
        "target_address": ask.links.target(run.target) if run.target in ask.project.targets else None,
        "older": _link(ask, around.before),
        "newer": _link(ask, around.after),
        "related": _related(ask, run, around),
        "later": [
            _link(ask, each) | {"compared": ask.links.compare(run.id, each.id, run.target)} for each in around.over
        ],
        "later_more": around.over_count - len(around.over),
        "others": [_link(ask, each) for each in recent if each.id != run.id],
        "compare_address": None if ask.links.is_static else f"{ask.links.root}compare",
        "ledger_of": run.target if ask.links.names_ledger else "",
        "series": {name: ask.links.series(run.id, run.target, name) for name in ["", *run.totals]},
        "part": _part(ask, run, wanted, values["diff"]["groups"]),
    }
    return View("run", twin, drawn)


def _around(ask: Ask, run: LedgerRun) -> tuple[Neighbours, list[LedgerRun]]:
    """Return the runs around one, and the newest of its target to compare it with."""
    newest = Wanted(run.target)

    def question(session: Session, where: str, absent: Collection[str]) -> tuple[Neighbours | None, list[LedgerRun]]:
        found = neighbours(session, where, absent, run)
        return found, page_of_runs(session, where, absent, newest, RECENT_RUNS) if found else []

    schemas = {ask.project.target(name).contract.ledger.schema for name in ask.project.targets}
    with ask.project.engine(read_only=True) as engine:
        for schema in sorted(schemas):
            for found, recent in engine.ledger.look(schema, question):
                if found is not None:
                    return _seen(engine, found), [*engine.ledger.seen(recent)]
    return Neighbours(), []


def _seen(engine: Engine, found: Neighbours) -> Neighbours:
    """Return the runs around one with whether each is at work now."""

    def seen(*runs: LedgerRun | None) -> tuple[LedgerRun, ...]:
        return engine.ledger.seen([run for run in runs if run is not None])

    before, after = (next(iter(seen(each)), None) for each in (found.before, found.after))
    return replace(found, before=before, after=after, over=seen(*found.over), naming=seen(*found.naming))


def _filter(ask: Ask) -> Filter:
    change, page = ask.word("change"), ask.word("page")
    kinds = {str(each) for each in Change}
    is_page = re.fullmatch(r"[1-9][0-9]{0,3}", page)
    return Filter(ask.word("text"), change if change in kinds else "", int(page) if is_page else 1)


def _part(ask: Ask, run: LedgerRun, wanted: Filter, groups: Sequence[Any]) -> dict[str, Any]:
    """Return the page of the diff that is wanted, and where the pages before and after it are; a copy has one page."""
    size = max(1, len(groups)) if ask.links.is_static else GROUPS_SHOWN
    pages = max(1, -(-len(groups) // size))
    page = min(wanted.page, pages)

    def address(number: int) -> str | None:
        if not 1 <= number <= pages:
            return None
        words = {"text": wanted.text, "change": wanted.change, "page": str(number) if number > 1 else ""}
        return f"{ask.links.run(run.id, run.target, **words)}#diff"

    return {
        "groups": groups[(page - 1) * size : page * size],
        "first": (page - 1) * size + 1,
        "matching": len(groups),
        "recorded": len(run.groups),
        "text": wanted.text,
        "change": wanted.change,
        "changes": [str(each) for each in Change],
        "before": address(page - 1),
        "after": address(page + 1),
    }


def _named(run: LedgerRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "kind": run.kind,
        "state": run.state,
        "range": run.range_text,
        "requested_at": instant(run.requested_at),
    }


def _link(ask: Ask, run: LedgerRun | None) -> dict[str, Any]:
    """Return what a run is called on a page, and where its own page is; nothing of none."""
    if run is None:
        return {}
    return _named(run) | {"address": ask.links.run(run.id, run.target), "word": state_text(run)}


def _related(ask: Ask, run: LedgerRun, around: Neighbours) -> list[dict[str, Any]]:
    """Return the runs that this one names, and those that name it, each with what it has to do with it."""
    named = [("puts back what it replaced", run.restores), ("approves its diff", run.approves)]
    related = [
        {
            "id": run_id,
            "words": words,
            "address": ask.links.run(run_id, run.target) if _RUN_ID.fullmatch(run_id) else None,
        }
        for words, run_id in named
        if run_id
    ]
    for each in around.naming:
        words = "puts back what this run replaced" if each.restores == run.id else "approves the diff of this run"
        related.append(_link(ask, each) | {"words": words})
    return related
