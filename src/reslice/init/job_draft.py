"""From a job's write to the source that recomputes any range of it, and to what it says of the contract."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from reslice.contract import GrainColumn, SliceColumn, Stamp, StampValue, Unit
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused
from reslice.init.draft import DraftMeasure, Hints, Proposal
from reslice.init.job import Job, is_clock
from reslice.init.job_dialect import damages, render, unrepeatable
from reslice.init.job_fit import fit
from reslice.init.job_names import name_outputs, named
from reslice.init.job_slice import JobSlice, choose, day_text, range_of, related
from reslice.init.names import is_stamp_id
from reslice.reading.bounds import BOUND, Bounding, FamilyOf, Rewriter, boundings, is_value
from reslice.reading.marks import MARK, THIS, word_for
from reslice.reading.outputs import JobGrain, JobQuery, Output, grain, unit_of, zone_of
from reslice.reading.parse import OWN
from reslice.tables import Fill, Target

_BOUND_WORD = re.compile(rf'"?({"|".join(BOUND.values())})"?\b')
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_PREFIX = len(BOUND["start"]) - len("start")


@dataclass(slots=True)
class Drafted:
    """A job that was read, before a contract is settled: `source` settles the query for one."""

    engine: Engine
    job: Job
    target: Target | None
    query: JobQuery
    outputs: list[Output]
    grain: JobGrain
    slice: JobSlice | None
    conditions: list[Bounding]
    clocks: tuple[str, ...]
    unsure: list[str] = field(default_factory=list)

    def output(self, name: str) -> Output | None:
        """Return a column of the query by name; None when there is none."""
        return next((each for each in self.outputs if each.name.lower() == name.lower()), None)

    @property
    def unit(self) -> Unit | None:
        """The unit that the job cuts its slice column to; None where it does not say."""
        found = self.output(self.slice.name) if self.slice is not None else None
        return unit_of(found.origin) if found is not None and found.origin is not None else None

    @property
    def timezone(self) -> str:
        """The zone in which the job reads its times; empty where it does not say."""
        found = self.output(self.slice.name) if self.slice is not None else None
        return zone_of(found.origin) if found is not None and found.origin is not None else ""

    @property
    def counts(self) -> frozenset[str]:
        """The columns that count."""
        return frozenset(each.name for each in self.outputs if each.origin is not None and _is_count(each.origin))

    def range_text(self, slice_of: SliceColumn) -> str:
        """Return the range that the job's own text runs over; empty where it does not say."""
        found, _ = related(self.query, self.output(slice_of.column), self.conditions, slice_of.column)
        return range_of(found, self.job.filters, slice_of.column, slice_of)

    def alone(self) -> Proposal:
        """Return the contract that the job alone suggests; Misused[nothing_to_draft] when nothing tells the slice."""
        if self.slice is None or not self.outputs:
            found = "nothing in the job tells which column decides the slice, and its table is not there to be asked"
            failure = Failure("nothing_to_draft", "a column that decides the slice", (found,), "reslice init --help")
            raise Misused(self.job.name, [failure], unchanged="no file was written")
        names = self.grain.names or self.job.keys
        wanted = {name.lower() for name in (*names, self.slice.name)}
        grain_names = [each.name for each in self.outputs if each.name.lower() in wanted]
        stamps = [name for name in self.clocks if name.lower() not in wanted]
        measures = [each.name for each in self.outputs if each.name not in (*grain_names, *stamps)]
        doubts = [] if names else ["grain: the job does not say which columns tell rows apart; only the slice is known"]
        unit = self.unit or Unit.DAY
        if self.unit is None:
            doubts.append("slice: the job does not say how long a slice is; day is a guess")
        doubts.append("measures: without the table their types are not known; a float needs a scale")
        return Proposal(
            grain=tuple(GrainColumn(name) for name in grain_names),
            grain_why=self.grain.why or self.job.keys_why,
            slice=SliceColumn(self.slice.name, unit, self.timezone or "UTC"),
            slice_why=self.slice.why,
            measures=tuple(
                DraftMeasure(name, 0, reason="a count") if name in self.counts else DraftMeasure(name)
                for name in measures
            ),
            stamps=tuple(_stamp(name) for name in stamps),
            unsure=tuple(doubts),
        )

    def source(self, proposal: Proposal) -> tuple[str, list[str]]:
        """Return the text of the source under a contract, and what is not sure about it. To be asked once."""
        own = self.query.dialect
        doubts = damages(self.job.query, self.job.script.dialect, own)
        self._bound(proposal.slice.column, proposal.slice.unit, doubts)
        tree = self._columns(proposal.computed)
        self._tables(tree, doubts)
        self._marks(tree, doubts)
        doubts += unrepeatable(tree, own)
        fit(tree, own, self.target)
        text = render(tree, own)
        return _BOUND_WORD.sub(lambda found: f":{found[1][_PREFIX:]}", text), doubts

    def _bound(self, name: str, unit: Unit, doubts: list[str]) -> None:
        """Put the bounds in, where the job limits the slice, or where the slice is made."""
        output = self.output(name)
        found, told = related(self.query, output, self.conditions, name)
        doubts += [*told, *_staying(self.query, self.conditions, found)]
        rewriter = Rewriter(self.query, self._family_of(), unit, output, doubts)
        if found:
            rewriter.replace(found)
            _judge(self.query, found, doubts)
        elif output is not None and output.origin is not None and output.select is not None:
            rewriter.add(output.origin, output.select)
            doubts.append(f"range: the job does not limit {name}; the draft does, where {name} is made")
        else:
            doubts.append(
                f"range: the job does not limit {name}, and where it comes from is not known; limit it by hand"
            )

    def _family_of(self) -> FamilyOf:
        known = {
            (table.table.lower(), column.name.lower()): column.family
            for table in self.engine.survey.relations()
            for column in table.columns
        }
        return lambda table, column: known.get((table, column))

    def _columns(self, wanted: Sequence[str]) -> exp.Query:
        """Return the query with the columns of the contract and no others."""
        tree, names = self.query.tree, {name.lower() for name in wanted}
        is_plain = isinstance(tree, exp.Select) and all(each.node is not None for each in self.outputs)
        if is_plain and self.outputs:
            for each in self.outputs:
                if each.name.lower() not in names and each.node is not None:
                    _no_longer_grouped(tree, each.node.unalias())
                    each.node.pop()
            tree.set("order", None)
            return tree
        if [each.name.lower() for each in self.outputs] == [name.lower() for name in wanted]:
            return tree
        inner = exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("job_rows")))
        return exp.Select(expressions=[exp.column(name, quoted=not name.isidentifier()) for name in wanted]).from_(
            inner
        )

    def _tables(self, tree: exp.Query, doubts: list[str]) -> None:
        """Name the tables as this database does, where it knows them without the job's database or schema."""
        named = {each.alias.lower() for each in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            if table.name == THIS and self.job.table is not None:
                table.replace(exp.to_table(self.job.table))
                continue
            if isinstance(table.this, exp.Identifier) and _PLAIN.fullmatch(table.name):
                table.this.set("quoted", False)
            prefix = [part for part in (table.args.get("catalog"), table.args.get("db")) if part is not None]
            if not prefix or not table.name or MARK.fullmatch(table.name):
                continue
            whole = ".".join(f'"{part.name}"' for part in (*prefix, table.this) if isinstance(part, exp.Identifier))
            if any(MARK.search(part.name) for part in prefix) or (
                self.engine.survey.find(whole) is None and self.engine.survey.find(f'"{table.name}"') is not None
            ):
                before = self.job.script.marked.shown(".".join(part.name for part in (*prefix, table.this)))
                table.set("db", None)
                table.set("catalog", None)
                if table.name.lower() not in named:
                    doubts.append(f"source: {before} was read as {table.name}")

    def _marks(self, tree: exp.Query, doubts: list[str]) -> None:
        """Put a name that nobody has in the place of each placeholder that is left, so that no plan gets past it."""
        marks, left = self.job.script.marked.marks, {}
        for node in list(tree.walk()):
            found = MARK.search(node.name) if isinstance(node, exp.Literal | exp.Identifier) else None
            if found is None:
                continue
            left[found[0]] = word_for(found[0], marks)
            if isinstance(node, exp.Literal):
                node.replace(exp.column(left[found[0]]))
            else:
                node.set("this", MARK.sub(left[found[0]], node.name))
        for mark, word in left.items():
            doubts.append(
                f"source: {marks[mark]} is no bound of the range; {word} stands in its place, to be written out"
            )


def drafted(engine: Engine, job: Job, target: Target | None) -> Drafted:
    """Read a job's query: its columns under the names of the table, its grain, slice and conditions."""
    query = JobQuery(job.query.copy(), OWN[engine.name][0])
    unsure = list(job.unsure)
    name_outputs(query, job, target, unsure)
    outputs = query.outputs()
    table = (job.table or "").rpartition(".")[2].strip('"').lower()
    conditions = boundings(query, table)
    clocks = [each.name for each in outputs if each.origin is not None and is_clock(each.origin)]
    clocks += [each.name for each in outputs if _is_run_id(each)]
    chosen = choose(query, [each for each in outputs if each.name not in clocks], conditions, job.filters, target)
    if chosen is not None and _write_out_constant(query, outputs, conditions, chosen.name, unsure):
        outputs = query.outputs()
    found = grain(query, outputs)
    unsure += [*found.unsure, *_disagreement(found, job, chosen)]
    unsure += _not_in(target, outputs)
    names = (*dict.fromkeys([*clocks, *job.clocks]),)
    return Drafted(engine, job, target, query, outputs, found, chosen, conditions, names, unsure)


def _no_longer_grouped(tree: exp.Expr, value: exp.Expr) -> None:
    """Take an expression that is no column any more out of GROUP BY."""
    group = tree.args.get("group")
    if group is not None and value in group.expressions:
        group.set("expressions", [item for item in group.expressions if item != value])


def _not_in(target: Target | None, outputs: Sequence[Output]) -> list[str]:
    """Say which columns the job writes that the live table lacks."""
    if target is None:
        return []
    known = {column.name.lower() for column in target.columns}
    lacking = [each.name for each in outputs if each.name.lower() not in known]
    return (
        [f"columns: the job writes {', '.join(lacking)}, which {target.table} does not have; left out"]
        if lacking
        else []
    )


def _is_run_id(output: Output) -> bool:
    """Whether a column is filled with a placeholder and named like the id of a run."""
    origin = output.origin
    is_mark = isinstance(origin, exp.Literal | exp.Column) and MARK.search(origin.name) is not None
    return is_mark and is_stamp_id(output.name)


def _is_count(value: exp.Expr) -> bool:
    while isinstance(value, exp.Coalesce | exp.Cast | exp.Paren):
        value = value.this
    return isinstance(value, exp.Count | exp.CountIf | exp.ApproxDistinct)


def _disagreement(found: JobGrain, job: Job, chosen: JobSlice | None) -> list[str]:
    doubts = []
    if job.keys_why in ("the MERGE's ON", "ON CONFLICT", "unique_key"):
        if found.names is not None and {name.lower() for name in found.names} != {name.lower() for name in job.keys}:
            said = f"{job.keys_why} says {', '.join(job.keys)}" if job.keys else f"{job.keys_why} names no column"
            doubts.append(f"grain: {found.why} says {', '.join(found.names)}, and {said}")
        doubts.append("the job never removes a row; a run removes groups that the source no longer has")
    if chosen is not None and found.names is not None and chosen.name not in found.names:
        doubts.append(f"grain: {chosen.name} was added, since it decides the slice and the job does not group by it")
    return doubts


def _judge(query: JobQuery, found: Sequence[Bounding], doubts: list[str]) -> None:
    """Say where the job's own condition was no closed range."""
    kinds = {each.kind for each in found}
    lefts = ", ".join(dict.fromkeys(query.shown(each.left) for each in found))
    if "watermark" in kinds:
        doubts.append(
            f"range: the job goes on from what the table holds ({lefts}); the draft takes the range it is given"
        )
    elif kinds == {"low"}:
        doubts.append(f"range: the job has no upper bound on {lefts}; the draft has one")
    elif kinds == {"high"}:
        doubts.append(f"range: the job has no lower bound on {lefts}; the draft has one")
    if any(each.kind == "low" and each.is_open for each in found):
        doubts.append(f"range: the job leaves out the first value of {lefts}; the draft takes it")


def _staying(query: JobQuery, conditions: Sequence[Bounding], found: Sequence[Bounding]) -> list[str]:
    """Name the conditions with a fixed date that no range replaces: other days may never pass them."""
    texts = [
        query.shown(each.node) for each in conditions if each not in found and any(day_text(v) for v in each.values)
    ]
    return [f"range: {text} stays in the source as it is; no range moves that date" for text in dict.fromkeys(texts)]


def _write_out_constant(
    query: JobQuery, outputs: Sequence[Output], conditions: Sequence[Bounding], name: str, unsure: list[str]
) -> bool:
    """Let a slice that the job writes as a constant come from the column that it filters by that constant."""
    output = next(each for each in outputs if each.name == name)
    if output.origin is None or output.select is None or output.node is None or not is_value(output.origin):
        return False
    parts = {part.sql() for part in output.origin.walk() if isinstance(part, exp.Literal | exp.Column)}
    for each in conditions:
        texts = {
            part.sql() for value in each.values for part in value.walk() if isinstance(part, exp.Literal | exp.Column)
        }
        if each.select is output.select and parts & texts:
            value = each.left.copy()
            if each.kind != "equal" and isinstance(value, exp.Column):
                value = exp.Cast(this=value, to=exp.DataType.build("date"))
            output.node.replace(named(value, name))
            group = output.select.args.get("group")
            if group is not None and not group.args.get("all"):
                group.set("expressions", [value.copy(), *group.expressions])
            text = f"slice: the job writes its own date into {name}; the draft takes {query.shown(value)}"
            unsure.append(
                f"{text}, by which it is filtered" + ("" if each.kind == "equal" else "; is one slice one such day?")
            )
            return True
    unsure.append(
        f"slice: the job writes its own date into {name}, and no column gives it; write the expression by hand"
    )
    return False


def _stamp(name: str) -> Stamp:
    return Stamp(name, StampValue.RUN_ID if is_stamp_id(name) else StampValue.RUN_TIME)


def hints_of(found: Drafted) -> Hints:
    """Return what the job says of its table, in the table's own spelling of names."""
    assert found.target is not None, "hints are for a table that is there"
    spelled = {column.name.lower(): column.name for column in found.target.columns}
    plain = {column.name for column in found.target.columns if column.fill is not Fill.GENERATED}

    def known(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(spelled[name.lower()] for name in names if name.lower() in spelled)

    names = found.grain.names if found.grain.names is not None else found.job.keys or None
    return Hints(
        columns=known([each.name for each in found.outputs]) if found.outputs else tuple(plain),
        grain=known(names) if names else None,
        grain_why=found.grain.why if found.grain.names is not None else found.job.keys_why,
        slice=next(iter(known([found.slice.name])), None) if found.slice is not None else None,
        slice_why=found.slice.why if found.slice is not None else "",
        unit=found.unit,
        timezone=found.timezone,
        counts=frozenset(known(tuple(found.counts))),
        clocks=frozenset(known(found.clocks)),
    )
