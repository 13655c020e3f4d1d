"""The names of the columns that a job writes: by its own list, by the table's order, or by its query."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from reslice.init.job import Job
from reslice.reading.outputs import JobQuery, Output, grouped_name
from reslice.tables import Fill, Target


def name_outputs(query: JobQuery, job: Job, target: Target | None, unsure: list[str]) -> None:
    """Give each column of the query the name of the column it fills, and let GROUP BY name expressions."""
    select = query.select()
    _add_fixed(select, job)
    outputs = query.outputs()
    if any(each.node is None for each in outputs):
        return  # a star brings its own names along
    _write_out_groups(select, outputs)
    names = _names(outputs, job, target, unsure)
    for each, name in zip(outputs, names, strict=True):
        assert each.node is not None, "stars were left alone"
        if name != each.name or not each.name:
            each.node.replace(named(each.node.unalias().copy(), name))


def named(value: exp.Expr, name: str) -> exp.Expr:
    """Return a value under a name; a column that has it already needs none."""
    if isinstance(value, exp.Column) and value.name == name:
        return value
    return exp.alias_(value, name, quoted=not name.isidentifier())


def _add_fixed(select: exp.Select, job: Job) -> None:
    """Let a partition that the job names by value be a column of the query."""
    written = {each.alias_or_name.lower() for each in select.expressions}
    for name, value in job.fixed.items():
        if name.lower() not in written:
            select.append("expressions", exp.alias_(value.copy(), name))
            if job.columns is not None:
                job.columns = (*job.columns, name)


def _write_out_groups(select: exp.Select, outputs: Sequence[Output]) -> None:
    """Replace positions and aliases in GROUP BY by what they mean, so that columns can be renamed and left out."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        return
    items = []
    for item in group.expressions:
        name = grouped_name(item, outputs)
        meant = next((each.node for each in outputs if each.name == name and each.node is not None), None)
        items.append(item if meant is None else meant.unalias().copy())
    group.set("expressions", items)


def _names(outputs: Sequence[Output], job: Job, target: Target | None, unsure: list[str]) -> list[str]:
    own = [job.renames.get(each.name.lower(), each.name) for each in outputs]
    if job.columns is not None:
        if len(job.columns) == len(outputs):
            return list(job.columns)
        unsure.append(
            f"columns: the job lists {len(job.columns)} columns and computes {len(outputs)}; the query's names stay"
        )
    elif target is not None and not job.is_by_name:
        own = _by_position(own, target, job.partition, unsure)
    return _nameable(own, unsure)


def _by_position(own: list[str], target: Target, partition: Sequence[str], unsure: list[str]) -> list[str]:
    """Return the names of the table's columns where the query's are others: an INSERT without a list goes by place.

    The columns of a partition come last, wherever the table has them.
    """
    places = [column.name for column in target.columns if column.fill is not Fill.GENERATED]
    places.sort(key=lambda name: name.lower() in partition)
    known = {name.lower() for name in places}
    if all(name.lower() in known for name in own) and len({name.lower() for name in own}) == len(own):
        wanted = [name.lower() for name in places if name.lower() in {each.lower() for each in own}]
        if wanted != [name.lower() for name in own]:
            unsure.append(
                "columns: the job writes by place, and its names stand in another order than the table's; read by name"
            )
        return own
    if len(own) > len(places):
        unsure.append(f"columns: the job computes {len(own)} columns, and {target.table} has {len(places)}")
        return own
    moved = [
        f"{before or 'a column without name'} as {name}"
        for before, name in zip(own, places, strict=False)
        if before.lower() != name.lower()
    ]
    unsure.append(f"columns: the job writes by place; it was read as {', '.join(moved)}")
    return places[: len(own)]


def _nameable(own: list[str], unsure: list[str]) -> list[str]:
    """Return names of which each is one: a column without a name gets its place."""
    names = [name or f"column_{place}" for place, name in enumerate(own, start=1)]
    without = [after for before, after in zip(own, names, strict=True) if not before]
    if without:
        unsure.append(f"columns: {', '.join(without)} has no name in the job; call it what the table does")
    return names
