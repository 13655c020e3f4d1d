"""The columns of a table that the columns of a query become, and the one that holds the run's own id."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from reslice.audit.write import Write
from reslice.reading.bounds import boundings
from reslice.reading.marks import MARK

_RUN = re.compile(
    r"(?:.*_)?(?:run|batch|load|job|exec|execution|invocation|version|snapshot|attempt|process|etl|audit|dag_?run|task)"
    r"(?:_?(?:run|batch|load|job))?_?(?:id|no|nr|num|number|key|uuid|guid|seq|version)|version|revision|run|batch|run_?uuid",
    re.IGNORECASE,
)
"""The name of a column that tells runs apart."""
_UNIQUE_NAMES = frozenset(
    {"gen_random_uuid", "uuid", "newid", "generate_uuid", "uuid_string", "generateuuidv4", "sys_guid"}
)


def is_run_name(name: str) -> bool:
    """Whether a column is called as those are that tell runs apart."""
    return _RUN.fullmatch(name) is not None


def table_columns(write: Write) -> dict[str, str]:
    """Return for each column of the query that is written under another name the table's, both in small letters."""
    query = write.query
    if query is None:
        return {}
    names = [each.name.lower() for each in query.outputs()]
    node = write.node
    if isinstance(node, exp.Merge):
        return _merged_columns(write, node, names)
    own = write.columns
    if not own and isinstance(node, exp.Insert) and not node.args.get("by_name"):
        own = tuple(write.declared.types)
    return dict(zip(names, own, strict=True)) if len(own) == len(names) else {}


def _merged_columns(write: Write, node: exp.Merge, names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for when in node.args["whens"].expressions if node.args.get("whens") else []:
        then = when.args.get("then")
        if isinstance(then, exp.Insert) and isinstance(then.this, exp.Tuple):
            values = then.expression
            for column, value in zip(
                then.this.expressions, values.expressions if isinstance(values, exp.Tuple) else [], strict=False
            ):
                if isinstance(value, exp.Column):
                    found[value.name.lower()] = column.name.lower()
    for match in write.matches:
        if isinstance(match.other, exp.Expr):
            columns = list(match.other.find_all(exp.Column))
            if len(columns) == 1:
                found[columns[0].name.lower()] = match.column
    alias = node.args["using"].args.get("alias") if node.args.get("using") else None
    renamed = [each.name.lower() for each in alias.args.get("columns") or []] if alias is not None else []
    if len(renamed) == len(names):
        found |= {name: found.get(new, new) for name, new in zip(names, renamed, strict=True)}
    return found


def run_column_of(write: Write, columns: Mapping[str, str]) -> str:
    """Return the column, by the table's name for it, that holds the run's own id; empty where there is none.

    That is a value which comes from outside or is new each time, by the name of an id of runs, and by which the query
    does not choose its rows.
    """
    query = write.query
    if query is None:
        return ""
    limits = {mark for each in boundings(query, write.table) for value in each.values for mark in _marks(value)}
    for each in query.outputs():
        if each.origin is None:
            continue
        name = columns.get(each.name.lower(), each.name.lower())
        is_outside = _is_from_outside(each.origin) and not set(_marks(each.origin)) & limits
        if is_outside and (
            _RUN.fullmatch(name) or any(_RUN.fullmatch(_word(write, mark)) for mark in _marks(each.origin))
        ):
            return name
        if _is_unique(each.origin) and not _is_of_rows(each.origin) and _RUN.fullmatch(name):
            return name
    return ""


def _marks(value: exp.Expr) -> list[str]:
    texts = [each.name for each in value.walk() if isinstance(each, exp.Identifier | exp.Literal)]
    return [mark for text in texts for mark in MARK.findall(text)]


def _word(write: Write, mark: str) -> str:
    """Return the name within a placeholder."""
    words = re.findall(r"[A-Za-z_]\w*", write.script.marked.marks.get(mark, ""))
    return words[-1] if words else ""


def _is_from_outside(value: exp.Expr) -> bool:
    return bool(_marks(value)) and not _is_of_rows(value)


def _is_of_rows(value: exp.Expr) -> bool:
    """Whether a value depends on the rows that are read."""
    columns = [each for each in value.find_all(exp.Column) if not MARK.fullmatch(each.name)]
    return bool(columns) or value.find(exp.AggFunc) is not None


def _is_unique(value: exp.Expr) -> bool:
    return any(
        isinstance(each, exp.Uuid) or (isinstance(each, exp.Anonymous) and str(each.this).lower() in _UNIQUE_NAMES)
        for each in value.walk()
    )
