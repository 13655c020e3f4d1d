"""Init: draft a contract and a source from a table that is there, or from the write that fills it today.

The database is only read. Both files are written or neither, and none is overwritten.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from reslice import moments
from reslice.commands import command
from reslice.contract import SliceColumn, Unit
from reslice.engines import sources
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused, Refused, ResliceError
from reslice.init import file as init_file
from reslice.init.draft import Draft, Proposal
from reslice.init.propose import propose
from reslice.init.source import guess
from reslice.init.text import source_text, target_lines
from reslice.ranges import Scope
from reslice.tables import Column, Target

if TYPE_CHECKING:
    from reslice.init.job import Job


@dataclass(frozen=True, slots=True)
class Asked:
    """What `init` was asked for: the target's name, the contract file, and the connection as it is written there.

    `tables` maps the targets that the file has already to their tables. `again` makes the command that asks the same
    of another table.
    """

    name: str
    file: Path
    connection: str
    tables: Mapping[str, str] = field(default_factory=dict)
    again: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Initiated:
    """What `init` wrote. `contract` are the target's lines, `next` the first plan."""

    target: str
    table: str
    proposal: Proposal
    contract: str
    source: str
    files_written: tuple[str, ...]
    notes: tuple[str, ...]
    unsure: tuple[str, ...]
    next: str


def from_table(engine: Engine, asked: Asked, table: str) -> Initiated:
    """Draft a contract from a live table, and a source from the table it seems to come from, if there is one.

    Raises Refused[target_missing, target_not_table], Misused[nothing_to_draft]; nothing is written then.
    """
    target = found_table(engine, asked, table)
    proposal = propose(engine, target)
    found = guess(engine, target, proposal, asked.name, _taken(engine, asked))
    head = [
        f"The SELECT that recomputes {asked.name}. :start and :end are the first and the last day of the range, both"
        " included; :start_instant and :end_instant are instants, and the second is not included."
    ]
    name, is_there = init_file.source_name(asked.file.parent, asked.name)
    draft = Draft(
        name=asked.name,
        table=table.strip(),
        proposal=proposal,
        source=source_text(found.text, head, found.unsure),
        source_name=name,
        range_text=_range(proposal),
        origin="a SELECT with :start and :end, both included",
        unsure=(*found.unsure, *proposal.unsure),
    )
    if is_there:
        draft = replace(draft, source=(asked.file.parent / name).read_text("utf-8-sig"), unsure=proposal.unsure)
    return _written_down(asked, draft, target.resolved, is_there)


def from_job(engine: Engine, asked: Asked, job: Job, table: str | None) -> Initiated:
    """Draft contract and source from an existing write, and hold both to the live table, where there is one."""
    from reslice.init.job_draft import drafted, hints_of

    wanted = table if table is not None else job.table or asked.name
    target = found_table(engine, asked, table) if table is not None else _live(engine, wanted)
    found = drafted(engine, job, target)
    proposal = propose(engine, target, hints_of(found)) if target is not None else found.alone()
    text, doubts = found.source(proposal)
    known = wanted if target is None or table is not None else _as_known(target, wanted)
    unsure = [*_missing(target, wanted, known), *doubts, *found.unsure, *proposal.unsure]
    draft = Draft(
        name=asked.name,
        table=known,
        proposal=proposal,
        source=text,
        source_name=init_file.free_name(asked.file.parent, asked.name),
        range_text=found.range_text(proposal.slice) or _range(proposal),
        origin=f"drafted from {job.name}",
    )
    unsure = [*_unreadable(engine, draft, target), *dict.fromkeys(unsure)]
    head = [f"The SELECT that recomputes {asked.name}, drafted by reslice init from {job.name}."]
    whole = source_text(text, head, unsure)
    return _written_down(
        asked,
        replace(draft, source=whole, unsure=tuple(unsure)),
        target.resolved if target is not None else wanted,
        is_there=False,
    )


def _live(engine: Engine, wanted: str) -> Target | None:
    """Return the job's table where the database has it, with or without the database and schema the job names."""
    found = engine.survey.find(wanted) or engine.survey.find(wanted.rpartition(".")[2])
    return found if found is not None and found.kind == "table" else None


def _taken(engine: Engine, asked: Asked) -> dict[str, str]:
    """Return the full names of the tables that targets of the contract fill already, and these targets."""
    found = {name: engine.survey.find(table) for name, table in asked.tables.items()}
    return {target.resolved: name for name, target in found.items() if target is not None}


def found_table(engine: Engine, asked: Asked, table: str) -> Target:
    """Return the table that is named; Refused when there is none, or it is a view."""
    target = engine.survey.find(table)
    rule = f"--table {table}"
    if target is None:
        names = [_known_name(each) for each in engine.survey.relations() if each.kind == "table"]
        near = difflib.get_close_matches(table.lower(), names, n=1)
        hint, after = "", "create the table"
        if near:
            hint = f"; did you mean {near[0]}?"
            after = asked.again(near[0]) if asked.again is not None else f"name {near[0]}"
        failure = Failure("target_missing", rule, (f"the database has no table {table}{hint}",), after)
        raise Refused(asked.name, [failure], unchanged="no file was written")
    if target.kind != "table":
        found = f"{target.resolved} is a {target.kind}; rows of a {target.kind} cannot be replaced"
        failure = Failure("target_not_table", rule, (found,), "name the table behind it")
        raise Refused(asked.name, [failure], unchanged="no file was written")
    return target


def _known_name(target: Target) -> str:
    """Return a table's name as a person writes it."""
    parts = [target.table] if target.schema in ("main", "public") else [target.schema, target.table]
    return ".".join(map(sources.identifier, parts))


def _unreadable(engine: Engine, draft: Draft, target: Target | None) -> list[str]:
    """Say what the database minds in a source that should be whole, and where its columns are not the table's."""
    if target is None:
        return []
    contract = draft.contract()
    try:
        scope = Scope.parse(draft.range_text, contract.slice)
        columns = engine.survey.source_columns(contract, target, scope)
    except ResliceError as error:
        return [f"source: {line}" for line in error.failures[0].found[:1]]
    return _other_columns(draft, target, columns)


def _other_columns(draft: Draft, target: Target, columns: Sequence[Column]) -> list[str]:
    """Say which columns a source returns that the table lacks, and which of the contract's it does not return."""
    names = {column.name.lower() for column in columns}
    wanted = {name.lower() for name in draft.proposal.computed}
    extra = sorted(column.name for column in columns if column.name.lower() not in wanted)
    missing = sorted(name for name in draft.proposal.computed if name.lower() not in names)
    return [
        *([f"source: it returns {', '.join(extra)}, which {target.table} does not have"] if extra else []),
        *([f"source: it does not return {', '.join(missing)}, which a replace would blank"] if missing else []),
    ]


def _missing(target: Target | None, wanted: str, known: str) -> list[str]:
    """Say that the database has no such table, or has it under another name."""
    if target is not None:
        return [] if known == wanted else [f"table: {wanted} was read as {known}"]
    return [f"table: the database has no table {wanted}; nothing could be compared with it, and a plan needs it"]


def _as_known(target: Target, wanted: str) -> str:
    """Return the table as the job names it, where the database knows it by that name; else as the database does."""
    if wanted.rpartition(".")[2].strip('"').lower() != target.table.lower() or "." not in wanted:
        return wanted
    return _known_name(target)


def _range(proposal: Proposal) -> str:
    """Return a range to begin with: the newest slice that has rows, else the one that holds yesterday."""
    return proposal.newest or _yesterday(proposal.slice)


def _yesterday(slice_of: SliceColumn) -> str:
    day = (datetime.now(UTC) - timedelta(days=1)).date()
    if slice_of.unit is Unit.HOUR:
        return day.isoformat()
    return moments.label(moments.slice_of(day, slice_of.unit), slice_of.unit, slice_of.timezone)


def _written_down(asked: Asked, draft: Draft, table: str, is_there: bool) -> Initiated:
    if not draft.proposal.measures:
        found = "every column is in the grain or filled by the database, and none is left for a measure"
        failure = Failure("nothing_to_draft", "a column that the source computes", (found,), "reslice init --help")
        raise Misused(asked.name, [failure], unchanged="no file was written")
    text = init_file.contract_text(draft, asked.file, asked.connection)
    files = init_file.write(draft, asked.file, text, is_source_there=is_there)
    notes = [f"{draft.source_name} was there already; the contract names it, and it stays as it is"] if is_there else []
    scope = Scope.parse(draft.range_text, draft.proposal.slice)
    return Initiated(
        asked.name,
        table,
        draft.proposal,
        "\n".join(target_lines(draft)) + "\n",
        draft.source,
        files,
        tuple(notes),
        draft.unsure,
        command("plan", asked.name, scope),
    )
