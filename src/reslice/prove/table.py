"""The table in a place: found, described, copied into the evidence, and compared with what its source gives."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from reslice.check import check
from reslice.compare import compare
from reslice.contract import Contract
from reslice.engines import sql
from reslice.engines.base import Engine
from reslice.engines.sandbox import Look, Place
from reslice.errors import Failure, Misused, Refused
from reslice.prove.evidence import Evidence
from reslice.prove.shape import Shape, check_slice, refitted, shape_of
from reslice.prove.values import Source, Subject
from reslice.ranges import Range, Scope, last_over
from reslice.stage import refuse_target, stage
from reslice.tables import Target


@dataclass(frozen=True, slots=True)
class Opened:
    """A place that is open: the table as it is now, what is compared of it, and the evidence beside it."""

    look: Look
    shape: Shape
    evidence: Evidence

    @property
    def rows(self) -> str:
        """What the table's rows are read from."""
        return sql.relation(self.shape.target)


@contextmanager
def opened(place: Place, subject: Subject, *, shape: Shape | None = None, writes: bool = False) -> Iterator[Opened]:
    """Open a place for as long as the block lasts; with a `shape` the columns are those, whatever others there are.

    Raises Misused[usage] when there is no such table, or no such column.
    """
    with place.look(writes=writes) as look:
        yield described(look, subject, shape)


def described(look: Look, subject: Subject, shape: Shape | None = None) -> Opened:
    """Describe the table on a connection that is open."""
    engine = look.engine
    target = _target(engine, subject)
    shape = shape_of(subject, target) if shape is None else refitted(shape, subject, target)
    column = check_slice(subject, shape)
    inside = "true"
    if column is not None:
        assert subject.scope is not None and subject.slice is not None, "a range is of a slice column"
        inside = sql.within(engine.dialect, sql.quote(column.name), column, subject.slice, subject.scope)
    return Opened(look, shape, Evidence(engine, look.schema, shape, inside))


def _target(engine: Engine, subject: Subject) -> Target:
    found = engine.survey.find(subject.table)
    if found is None:
        raise _no_table(engine, subject)
    if subject.contract is not None and found.kind == "table":
        return replace(engine.target(subject.contract), rights_missing=())
    return found


def _no_table(engine: Engine, subject: Subject) -> Misused:
    there = [each.beside for each in engine.survey.relations()]
    short = {each.rpartition(".")[2]: each for each in there}
    near = difflib.get_close_matches(subject.table, [*there, *short], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    failure = Failure("usage", f"table: {subject.table}", (f"the database has no table {subject.table}{hint}",), "")
    error = Misused(subject.name, [failure], unchanged="the command was not run")
    error.meant = (subject.table, near[0]) if near and subject.contract is None else None
    return error


def compared_with_source(now: Opened, subject: Subject, after: str, before: str) -> Source:
    """Stage and check the source in the place, and compare the table with it, at the grain.

    The verdict is that of `status`; where the source cannot be staged, or breaks the contract, it is not known.
    """
    contract = subject.contract
    assert contract is not None, "a source is known from a contract"
    engine = now.look.engine
    scope = subject.scope or _whole(engine, contract, now.shape.target)
    if scope is None:
        return Source(error=f"{contract.table} is empty, so there is no first slice; name a --range")
    target = _only_compared(now.shape.target, contract)
    try:
        refuse_target(engine, contract, target)
        staged = stage(engine, contract, target, scope, None)
        diff = compare(engine, check(engine, staged))
    except (Refused, Misused) as error:
        return Source(scope, error=str(error))
    state = now.evidence.take("source", engine.names(staged.token).staged)
    found = now.evidence.source("source", after, before)
    return Source(scope, state, found, len(diff.differing))


def _only_compared(target: Target, contract: Contract) -> Target:
    """Return the table as one of which no row is replaced: a view will do, and so will columns that nobody declares."""
    named = {*contract.columns, *(stamp.column for stamp in contract.stamps)}
    columns = tuple(column for column in target.columns if column.name in named)
    return replace(target, kind="table", columns=columns, hindrances=(), referenced_by=(), rights_missing=())


def _whole(engine: Engine, contract: Contract, target: Target) -> Scope | None:
    """Return the slices from the first that the table holds to the last that is over; None when it holds none."""
    ends = engine.extent(contract, target)
    if ends is None:
        return None
    first, last = ends
    through = max(last, last_over(engine.now(), contract.slice))
    return Scope.of(Range(contract.slice.unit, contract.slice.timezone, first, through))
