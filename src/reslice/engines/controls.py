"""Controls: independent figures of the source, or of a downstream reader, against rows, exactly and per slice."""

from __future__ import annotations

from reslice.contract import Reconciliation
from reslice.engines import sql
from reslice.engines.dialect import Dialect
from reslice.engines.session import Session, exact_number, label_of, sum_of
from reslice.engines.sql import Names, quote
from reslice.tables import Column, Family
from reslice.values import ControlLine, Problem, Staged


def control_lines(
    session: Session, staged: Staged, names: Names, query: Reconciliation, rows: str
) -> tuple[list[Problem], tuple[ControlLine, ...]]:
    """Compare the figures of `query`, staged in the control table, with the rows in `rows`, exactly and per slice."""
    problems = _control_shape(session, staged, names, query)
    if problems:
        return problems, ()
    scope, zone_slice = staged.scope, staged.contract.slice
    column = staged.target.column(zone_slice.column)
    value = session.dialect.plain(_control_slice(session.dialect, staged, column), column)
    figures, sums = [], []
    for place, match in enumerate(query.match):
        figures.append(f"coalesce({_figure(staged, match.figure, match.measure)}, 0) AS f{place}")
        sums.append(f"{sum_of(session.dialect, staged, match.measure)} AS t{place}")
    inside = sql.within(session.dialect, value, column, zone_slice, scope)
    pairs = ", ".join(f"coalesce(c.f{n}, 0) AS f{n}, coalesce(t.t{n}, 0) AS t{n}" for n in range(len(figures)))
    joined = (
        f"SELECT coalesce(c.slice, t.slice) AS slice, {pairs}\n"
        f"FROM (SELECT {session.dialect.slice_start(value, column, zone_slice)} AS slice, {', '.join(figures)}"
        f" FROM {names.control} WHERE {inside}) AS c\n"
        f"FULL JOIN (SELECT {sql.SLICE} AS slice, {', '.join(sums)} FROM {rows} GROUP BY 1) AS t ON c.slice = t.slice"
    )
    totals = session.execute(
        "SELECT " + ", ".join(f"sum(f{n}), sum(t{n})" for n in range(len(figures))) + f" FROM ({joined}) AS joined"
    )[0]
    lines = []
    for place, match in enumerate(query.match):
        differing = session.execute(
            f"SELECT {session.dialect.slice_text('slice', column)} FROM ({joined}) AS joined"
            f" WHERE f{place} <> t{place} ORDER BY slice"
        )
        labels = tuple(label_of(scope, column, row[0]) for row in differing)
        control, target = (exact_number(value) or 0 for value in totals[2 * place : 2 * place + 2])
        lines.append(ControlLine(query.name, match.figure, match.expression, control, target, labels))
    return [], tuple(lines)


def _control_slice(dialect: Dialect, staged: Staged, column: Column) -> str:
    found = next(each for each in staged.control_columns if each.name == column.name)
    return quote(column.name) if found.type == column.type else dialect.try_cast(quote(column.name), column, found)


def _figure(staged: Staged, figure: str, measure: str | None) -> str:
    """Return a figure of the control; a float is read at the scale of the measure it must match."""
    column = next(each for each in staged.control_columns if each.name == figure)
    scale = None if measure is None else sql.scales(staged.contract)[measure]
    if column.family is Family.FLOAT and scale is not None:
        return f"CAST({quote(figure)} AS DECIMAL(38,{scale}))"
    return quote(figure)


def _control_shape(session: Session, staged: Staged, names: Names, query: Reconciliation) -> list[Problem]:
    """Find what keeps the control from being one row of exact figures per slice of the range."""
    problem = column_problem(staged, query)
    return [problem] if problem is not None else _row_problems(session, staged, names, query)


def column_problem(staged: Staged, query: Reconciliation) -> Problem | None:
    """Return what the columns of a control lack: the slice column, a figure, or an exact type; None when nothing."""
    slice_name = staged.contract.slice.column
    found = {column.name: column for column in staged.control_columns}
    wanted = [slice_name, *(match.figure for match in query.match)]
    missing = [name for name in wanted if name not in found]
    if missing:
        words = f"{query.query.name} returns no column {', '.join(missing)}; it returns {', '.join(found)}"
        return Problem("control_rows", None, len(missing), words)
    scales = sql.scales(staged.contract)
    for match in query.match:
        family = found[match.figure].family
        exact = family in (Family.INTEGER, Family.DECIMAL)
        if not exact and not (family is Family.FLOAT and match.measure and scales[match.measure] is not None):
            kind = found[match.figure].type
            words = (
                f"{query.query.name} returns {match.figure} as {kind}; an exact number (integer or decimal) is needed"
            )
            return Problem("control_rows", match.figure, 1, words)
    return None


def _row_problems(session: Session, staged: Staged, names: Names, query: Reconciliation) -> list[Problem]:
    slice_name = staged.contract.slice.column
    column = staged.target.column(slice_name)
    value = session.dialect.plain(_control_slice(session.dialect, staged, column), column)
    inside = sql.within_range(session.dialect, value, column, staged.scope.hull)
    start = session.dialect.slice_start(value, column, staged.contract.slice)
    row = session.execute(
        f"SELECT count(*) FILTER (WHERE {value} IS NULL), count(*) FILTER (WHERE NOT {inside}),"
        f" count(*) - count(DISTINCT {start}) FROM {names.control}"
    )[0]
    phrases = ("have no slice", "lie outside the range", "repeat a slice")
    return [
        Problem("control_rows", slice_name, int(count), f"{int(count)} rows of {query.query.name} {word}")
        for count, word in zip(row, phrases, strict=True)
        if count
    ][:1]
