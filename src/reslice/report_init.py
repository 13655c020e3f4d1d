"""The text and the JSON of `init`: what was written, what was proposed and why, and what was not sure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from reslice.engines.base import LedgerMade
from reslice.init import Initiated
from reslice.init.text import options
from reslice.layout import counted, escaped, placed
from reslice.report import fact_lines, script, sections

LEDGER_NOTES = {
    "duckdb": "DuckDB has no grants: who may write the file may write the ledger",
    "postgresql": "who owns what stands here runs it once, and the role that is named can run afterwards",
}
"""Who may write to a ledger, by engine."""


def init_text(found: Initiated, *, place: str = "") -> str:
    """Return everything a user reads about a draft."""
    parts = found.proposal
    zone = f" in {parts.slice.timezone}" if parts.slice.timezone != "UTC" else ""
    rows = [
        ("grain", _why(", ".join(column.name for column in parts.grain), parts.grain_why)),
        ("slice", _why(f"{parts.slice.column}, {parts.slice.unit}{zone}", parts.slice_why)),
        *(("measure", _why(f"{each.name}: {options(each)}", each.reason)) for each in parts.measures),
        *(("stamp", f"{escaped(stamp.column)}: {stamp.value}") for stamp in parts.stamps),
        *(("left out", _why(each.value, each.reason)) for each in parts.left_out),
    ]
    head = [f"drafted: {escaped(found.target)} for the table {escaped(found.table)}"]
    head += [f"wrote {escaped(name)}" for name in found.files_written]
    doubts = [f"unsure: {escaped(text)}" for text in found.unsure]
    notes = [f"note: {escaped(text)}" for text in found.notes]
    end = [f"{escaped(found.table)} was not touched: init only reads the database."]
    return sections(head, fact_lines(rows), [*doubts, *notes], [*end, f"next: {placed(found.next, place)}"])


def _why(value: str, reason: str) -> str:
    return f"{escaped(value)}  ({escaped(reason)})" if reason else escaped(value)


def init_json(found: Initiated | None, *, place: str = "") -> dict[str, Any]:
    """Return a draft as JSON; without one, the same fields with nothing in them."""
    return {
        "schema": "reslice/init/1",
        "target": None if found is None else found.target,
        "table": None if found is None else found.table,
        "files_written": [] if found is None else [*found.files_written],
        "unsure": [] if found is None else [*found.unsure],
        "notes": [] if found is None else [*found.notes],
        "contract": None if found is None else found.contract,
        "source": None if found is None else found.source,
        "ledger": [],
        "sql": [],
        "error": None,
        "next": "" if found is None else placed(found.next, place),
        "exit_code": 0,
    }


def by_schema(found: Iterable[LedgerMade]) -> list[LedgerMade]:
    """Return what was made of each ledger, once: the targets of one schema share it, and each may add to it."""
    schemas: dict[str, LedgerMade] = {}
    for each in found:
        before = schemas.get(each.schema)
        if before is None:
            schemas[each.schema] = each
            continue
        made = (*before.made, *(name for name in each.made if name not in before.made))
        present = (*before.present, *(name for name in each.present if name not in (*before.present, *made)))
        views = (*before.views, *each.views)
        schemas[each.schema] = replace(before, made=made, present=present, views=views)
    return list(schemas.values())


def ledger_text(made: Sequence[LedgerMade], *, way_on: str, place: str = "") -> str:
    """Return what a ledger was made of, and what was there."""
    lines = []
    for each in made:
        schema = escaped(each.schema)
        if each.made:
            lines.append(f"made {counted(len(each.made), 'table')} in schema {schema}: {', '.join(each.made)}")
        if each.present:
            names = ", ".join(each.present)
            lines.append(f"schema {schema} has {counted(len(each.present), 'table')} already: {names}")
        lines += [f"made the view {escaped(view)}" for view in each.views]
    if not any(each.made or each.views for each in made):
        lines.append("nothing was written: the ledger is there")
    return sections(lines, [f"next: {placed(way_on, place)}"])


def ledger_sql_text(statements: Sequence[str], *, note: str = LEDGER_NOTES["duckdb"]) -> str:
    """Return the statements that make the ledger, and let a role use it, as a script."""
    return script(f"-- the ledger of reslice; {note}", statements)


def ledger_json(
    made: Sequence[LedgerMade],
    statements: Sequence[str],
    *,
    notes: Sequence[str] = (LEDGER_NOTES["duckdb"],),
    way_on: str,
    place: str = "",
) -> dict[str, Any]:
    """Return what a ledger was made of as JSON, or the statements that would make it."""
    return init_json(None) | {
        "notes": [*notes] if statements else [],
        "ledger": [
            {"schema": each.schema, "made": [*each.made], "present": [*each.present], "views": [*each.views]}
            for each in made
        ],
        "sql": [*statements],
        "next": placed(way_on, place),
    }
