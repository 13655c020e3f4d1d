"""Data frames that are written to a table: by which call, in which way, and what rows they hold, where that is told."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

from reslice.audit.python_scope import Scope, name_of
from reslice.audit.python_text import Speller

UNKNOWN_FRAME = "frame_of_unknown_rows"
"""The table that stands for the rows of a frame of which nothing is known."""

_AGGREGATING = frozenset(
    {
        "groupby",
        "groupBy",
        "group_by",
        "agg",
        "aggregate",
        "pivot_table",
        "crosstab",
        "value_counts",
        "resample",
        "rollup",
    }
)
_QUERYING = frozenset({"sql", "read_sql", "read_sql_query", "read_gbq", "query", "execute", "get_pandas_df"})
_READING = frozenset(
    {
        "read_csv", "read_parquet", "read_json", "read_excel", "read_sql_table", "read_table", "read_database", "table",
        "parquet", "csv", "json", "load", "createDataFrame", "DataFrame", "scan_csv", "scan_parquet", "read_feather",
        "from_dict", "from_records", "json_normalize", "jdbc",
    }
)  # fmt: skip
_DEPTH_MAX = 40


class Mode(StrEnum):
    """What a call does with the rows that are there."""

    APPEND = "append"
    REPLACE = "replace"
    SCOPE = "scope"  # what is replaced is left to the session
    PARTITIONS = "partitions"  # the partitions that the rows are of
    WHERE = "where"  # what a condition says


@dataclass(frozen=True, slots=True)
class FrameWrite:
    """One call that writes a frame. `table` is where its name stands, `condition` what it replaces where it says so."""

    call: ast.Call
    table: ast.expr
    mode: Mode
    frame: ast.expr
    condition: str = ""


def frame_write(call: ast.Call, scope: Scope, speller: Speller) -> FrameWrite | None:
    """Return the write of a frame that a call is; None where it is none, or fails where there is a table already."""
    if not isinstance(call.func, ast.Attribute):
        return None
    name, on = call.func.attr, call.func.value
    if name in ("to_sql", "to_gbq"):
        return _made(call, _argument(call, 0, "name", "destination_table"), _said(call, "if_exists", speller), on)
    if name == "write_database":
        return _made(call, _argument(call, 0, "table_name"), _said(call, "if_table_exists", speller), on)
    if name in ("saveAsTable", "save_as_table"):
        return _saved(call, scope, speller)
    if name == "insertInto":
        return _inserted(call, scope, speller)
    if name in ("append", "overwritePartitions", "overwrite", "createOrReplace", "replace"):
        return _written_to(call, name, scope)
    return None


def _made(call: ast.Call, table: ast.expr | None, exists: str, frame: ast.expr) -> FrameWrite | None:
    mode = {"append": Mode.APPEND, "replace": Mode.REPLACE}.get(exists)
    return None if table is None or mode is None else FrameWrite(call, table, mode, frame)


def _argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    for each in call.keywords:
        if each.arg in names:
            return each.value
    if len(call.args) > place and not isinstance(call.args[place], ast.Starred):
        return call.args[place]
    return None


def _said(call: ast.Call, keyword: str, speller: Speller) -> str:
    value = next((each.value for each in call.keywords if each.arg == keyword), None)
    spelled = speller.spelled(value) if value is not None else None
    return spelled.text.lower() if spelled is not None else ""


def _chain(node: ast.expr, scope: Scope) -> tuple[dict[str, ast.Call], ast.expr]:
    """Return the calls of a writer, such as `df.write.mode("append").option(…)`, by name, and the frame it is of."""
    calls: dict[str, ast.Call] = {}
    for _ in range(_DEPTH_MAX):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            key = node.func.attr
            first = node.args[0] if node.args else None
            if key == "option" and isinstance(first, ast.Constant) and isinstance(first.value, str):
                key = f"option {first.value}".lower()
            calls.setdefault(key, node)
            node = node.func.value
            if key == "writeTo":
                return calls, node
        elif isinstance(node, ast.Attribute) and node.attr in ("write", "writeStream"):
            return calls, node.value
        elif isinstance(node, ast.Name) and scope.value(node) is not None:
            node = scope.value(node) or node
        else:
            break
    return calls, node


def _option(calls: dict[str, ast.Call], name: str, speller: Speller) -> str:
    call = calls.get(f"option {name.lower()}")
    if call is not None and len(call.args) > 1:
        spelled = speller.spelled(call.args[1])
        return spelled.text if spelled is not None else "{" + name + "}"
    options = calls.get("options")
    return (_said(options, name, speller) if options is not None else "") or ""


def _saved(call: ast.Call, scope: Scope, speller: Speller) -> FrameWrite | None:
    assert isinstance(call.func, ast.Attribute), "it is a method"
    calls, frame = _chain(call.func.value, scope)
    table = _argument(call, 0, "name", "table_name")
    mode = _said(call, "mode", speller) or _argument_text(calls.get("mode"), speller)
    if table is None:
        return None
    if mode == "append":
        return FrameWrite(call, table, Mode.APPEND, frame)
    if mode not in ("overwrite", "truncate"):
        return None
    condition = _option(calls, "replaceWhere", speller)
    if condition:
        return FrameWrite(call, table, Mode.WHERE, frame, condition)
    if _option(calls, "partitionOverwriteMode", speller).lower() == "dynamic":
        return FrameWrite(call, table, Mode.PARTITIONS, frame)
    has_parts = "partitionBy" in calls or any(each.arg == "partitionBy" for each in call.keywords)
    return FrameWrite(call, table, Mode.SCOPE if has_parts else Mode.REPLACE, frame)


def _inserted(call: ast.Call, scope: Scope, speller: Speller) -> FrameWrite | None:
    assert isinstance(call.func, ast.Attribute), "it is a method"
    calls, frame = _chain(call.func.value, scope)
    table = _argument(call, 0, "tableName")
    if table is None:
        return None
    overwrite = _argument(call, 1, "overwrite")
    is_overwrite = isinstance(overwrite, ast.Constant) and overwrite.value is True
    if not is_overwrite and _argument_text(calls.get("mode"), speller) != "overwrite":
        return FrameWrite(call, table, Mode.APPEND, frame)
    if _option(calls, "partitionOverwriteMode", speller).lower() == "dynamic":
        return FrameWrite(call, table, Mode.PARTITIONS, frame)
    return FrameWrite(call, table, Mode.SCOPE, frame)


def _argument_text(call: ast.Call | None, speller: Speller) -> str:
    spelled = speller.spelled(call.args[0]) if call is not None and call.args else None
    return spelled.text.lower() if spelled is not None else ""


def _written_to(call: ast.Call, name: str, scope: Scope) -> FrameWrite | None:
    """Return the write of Spark's second writer: `df.writeTo("t").append()`."""
    assert isinstance(call.func, ast.Attribute), "it is a method"
    calls, frame = _chain(call.func.value, scope)
    writer = calls.get("writeTo")
    if writer is None or not writer.args:
        return None
    if name == "overwrite":
        condition = ast.unparse(call.args[0]) if call.args else "true"
        return FrameWrite(call, writer.args[0], Mode.WHERE, frame, "" if condition == "true" else "{condition}")
    modes = {"append": Mode.APPEND, "overwritePartitions": Mode.PARTITIONS}
    return FrameWrite(call, writer.args[0], modes.get(name, Mode.REPLACE), frame)


def rows_of(frame: ast.expr, scope: Scope, speller: Speller) -> str:
    """Return a query with the rows that a frame holds, as far as that is told: aggregated, of a query, or unknown."""
    node: ast.expr | None = frame
    is_aggregated = False
    for _ in range(_DEPTH_MAX):
        if isinstance(node, ast.Call):
            func = node.func
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            is_aggregated = is_aggregated or name in _AGGREGATING
            if is_aggregated:
                break
            query = _query_of(node, name, speller)
            if query:
                return query
            if name in _READING:
                return "SELECT * FROM frame_that_was_read"
            node = func.value if isinstance(func, ast.Attribute) else None
        elif isinstance(node, ast.Subscript | ast.Attribute) and not name_of(node).startswith("self."):
            node = node.value
        elif isinstance(node, ast.Name | ast.Attribute):
            node = _latest(node, scope, frame)
        else:
            break
    if is_aggregated:
        return "SELECT frame_key, count(*) AS frame_value FROM frame_that_was_read GROUP BY frame_key"
    return f"SELECT * FROM {UNKNOWN_FRAME}"


def _latest(node: ast.expr, scope: Scope, used: ast.expr) -> ast.expr | None:
    """Return what a name was given last before the place where it is used."""
    values = scope.values(node)
    before = [each for each in values if getattr(each, "lineno", 0) <= used.lineno and not _names(each, node)]
    aggregating = [each for each in values if _names(each, node) and _aggregates(each)]
    if aggregating:
        return aggregating[-1]
    return before[-1] if before else None


def _names(value: ast.expr, node: ast.expr) -> bool:
    name = name_of(node)
    return any(isinstance(each, ast.Name | ast.Attribute) and name_of(each) == name for each in ast.walk(value))


def _aggregates(value: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in _AGGREGATING for each in ast.walk(value))


def _query_of(call: ast.Call, name: str, speller: Speller) -> str:
    if name not in _QUERYING or not call.args:
        return ""
    spelled = speller.spelled(call.args[0])
    text = spelled.text.strip().rstrip(";") if spelled is not None else ""
    return text if text[:6].lower() in ("select", "with a") or text.lower().startswith("with ") else ""
