"""The calls of a Python file that write to a database, in order: SQL that is run, frames that are written, commits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from reslice.audit.python_frames import FrameWrite, frame_write
from reslice.audit.python_scope import Scope, name_of
from reslice.audit.python_text import Spelled, Speller

_RUNS = frozenset({"execute", "executemany", "executescript", "execute_batch", "execute_values", "exec_driver_sql"})
_MAY_RUN = frozenset({"sql", "run", "query", "execute_string", "fetch", "command", "run_query", "raw", "execute_sql"})
_OPERATOR = re.compile(r"(?:Operator|Sensor)$")
_SQL_KEYWORDS = ("sql", "query", "hql", "bql", "sql_query", "statement", "statements")
_STATEMENT = re.compile(
    r"(?is)\s*(?:(?:--[^\n]*\n|/\*.*?\*/|\{[%#].*?[%#]\}|\(|\s)\s*)*"
    r"(?:insert|delete|merge|update|create|truncate|with|begin|commit|replace|alter|drop|set|select|start|call|copy|exec)\b"
)
_WRITES = re.compile(
    r"(?i)\b(?:insert|delete|merge|update|truncate|replace|overwrite|create|alter|drop|commit|begin|set)\b"
)
_NAMELESS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\?|%s", re.DOTALL)
_CONNECTED = re.compile(r"(?i)cur|con|sess|engine|db|database|hook|client|bind|sql|spark|trans|redshift|snow|duck")
_SQL_WORD = re.compile(r"(?i)sql|quer|stmt|statement|insert|select|update|delete|create|drop|ddl|hql|text\(")
"""How what runs SQL is called, and how a text of it is."""
_DISPOSITIONS = {"WRITE_APPEND": "INSERT INTO %s ", "WRITE_TRUNCATE": "CREATE OR REPLACE TABLE %s AS "}
"""What a job of BigQuery does with the rows that are there."""
_BEGINNING = frozenset({"begin", "transaction", "atomic", "begin_nested"})


@dataclass(frozen=True, slots=True)
class SqlCall:
    """SQL that a call runs. `given` are the parameters that go with it, and `fields` what is put into the text."""

    call: ast.Call
    spelled: Spelled
    given: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that runs SQL which is only known when the program runs."""

    call: ast.Call
    argument: ast.expr


@dataclass(frozen=True, slots=True)
class Mark:
    """A transaction begins or is committed at a place; `word` is SQL."""

    word: str
    at: int


Event = SqlCall | UnknownCall | FrameWrite | Mark


@dataclass(slots=True)
class Events:
    """What a scope does to a database, in order. `is_own` says that it opens a connection, or is run as a task."""

    events: list[Event] = field(default_factory=list)
    is_own: bool = False


def events_of(scope: Scope, speller: Speller) -> Events:
    """Return what a scope does to a database, in order."""
    found = Events(is_own="task" in scope.decorators)
    for statement in scope.body:
        found.events += _in_statement(statement, scope, speller)
    for node in scope.walk():
        if isinstance(node, ast.Call):
            last = name_of(node.func).rpartition(".")[2]
            found.is_own = found.is_own or last in ("connect", "create_engine") or last.endswith("Hook")
    return found


def _in_statement(node: ast.AST, scope: Scope, speller: Speller) -> Iterator[Event]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    if isinstance(node, ast.ExceptHandler):
        return  # what is done when something failed is not part of the way that a run goes
    if isinstance(node, ast.With | ast.AsyncWith):
        begins = [item for item in node.items if _begins(item.context_expr)]
        for item in node.items:
            yield from _in_statement(item.context_expr, scope, speller)
        if begins:
            yield Mark("BEGIN", speller.offset(node.lineno, node.col_offset))
        for each in node.body:
            yield from _in_statement(each, scope, speller)
        if begins:
            yield Mark("COMMIT", speller.offset(node.lineno, node.col_offset))
        return
    if isinstance(node, ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from _in_statement(child, scope, speller)
        yield from _call(node, scope, speller)
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_statement(child, scope, speller)


def _begins(context: ast.expr) -> bool:
    func = context.func if isinstance(context, ast.Call) else context
    return isinstance(func, ast.Attribute) and func.attr in _BEGINNING


def _call(call: ast.Call, scope: Scope, speller: Speller) -> Iterator[Event]:
    name = name_of(call.func).rpartition(".")[2] or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    at = speller.span(call)[0]
    if name == "commit" and not call.args:
        yield Mark("COMMIT", at)
    elif name == "begin" and not call.args:
        yield Mark("BEGIN", at)
    elif (name == "config" or name_of(call.func).endswith("conf.set")) and len(call.args) == 2:
        yield from _setting(call, speller)
    elif _OPERATOR.search(name):
        yield from _operator(call, scope, speller)
    elif isinstance(call.func, ast.Attribute) and name in _RUNS | _MAY_RUN and (call.args or call.keywords):
        yield from _run(call, name, scope, speller)
    else:
        written = frame_write(call, scope, speller)
        if written is not None:
            yield written


def _setting(call: ast.Call, speller: Speller) -> Iterator[Event]:
    name, value = (speller.spelled(each) for each in call.args)
    if name is not None and value is not None and re.fullmatch(r"[\w.]+", name.text):
        yield Mark(f"SET {name.text}={value.text}", speller.span(call)[0])


def _run(call: ast.Call, name: str, scope: Scope, speller: Speller) -> Iterator[Event]:
    keyword = next((each.value for each in call.keywords if each.arg in _SQL_KEYWORDS), None)
    place = 1 if name in ("execute_batch", "execute_values") else 0
    argument = keyword if keyword is not None else call.args[place] if len(call.args) > place else None
    if argument is None:
        return
    others = [each for each in call.args if each is not argument]
    given = (*others, *(each.value for each in call.keywords if each.value is not argument))
    for each in _texts(argument, scope):
        spelled = speller.spelled(each)
        if spelled is not None and _STATEMENT.match(spelled.text):
            yield SqlCall(call, _with_names(spelled, given), given)
        elif spelled is None and _runs_sql(call, name, each, scope) and not _is_built(each, scope):
            yield UnknownCall(call, each)


def _runs_sql(call: ast.Call, name: str, argument: ast.expr, scope: Scope) -> bool:
    """Whether what a method runs is SQL, by what its object and its argument are called: commands are run as well."""
    assert isinstance(call.func, ast.Attribute), "it is a method"
    called = name_of(call.func.value).rpartition(".")[2].lower()
    if name == "execute":
        return bool(_CONNECTED.search(ast.unparse(call.func.value)) or _SQL_WORD.search(ast.unparse(argument)))
    if name in _RUNS:
        return True
    if name == "sql":
        return called.endswith("spark")
    made = scope.value(call.func.value) if isinstance(call.func.value, ast.Name | ast.Attribute) else call.func.value
    is_hook = isinstance(made, ast.Call) and name_of(made.func).endswith("Hook")
    return name == "run" and (is_hook or called.endswith("hook"))


def _with_names(spelled: Spelled, given: tuple[ast.expr, ...]) -> Spelled:
    """Return a text whose nameless placeholders have the names of the values that they stand for."""
    values = given[0].elts if given and isinstance(given[0], ast.List | ast.Tuple) else []
    found = [each for each in _NAMELESS.finditer(spelled.text) if each[0] in ("?", "%s")]
    if not found or len(found) != len(values) or not all(name_of(each) for each in values):
        return spelled
    named = Spelled(fields=spelled.fields)
    at = 0
    for each, value in zip(found, values, strict=True):
        _copy(spelled, at, each.start(), named)
        named.add(f"{{{name_of(value)}}}", spelled.origin(each.start()))
        at = each.end()
    _copy(spelled, at, len(spelled.text), named)
    return named


def _copy(spelled: Spelled, start: int, end: int, into: Spelled) -> None:
    for place in range(start, end):
        into.add(spelled.text[place], spelled.origin(place))


def _texts(argument: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the texts of a list of statements, or the one that it is."""
    given = scope.value(argument) if isinstance(argument, ast.Name | ast.Attribute) else None
    inner = given if given is not None else argument
    return list(inner.elts) if isinstance(inner, ast.List | ast.Tuple) else [argument]


def _is_built(node: ast.expr, scope: Scope) -> bool:
    """Whether a statement is one that a library builds from calls, such as `select(…)`, and no text."""
    inner: ast.expr | None = scope.value(node) if isinstance(node, ast.Name) else node
    for _ in range(30):
        if isinstance(inner, ast.Call):
            if isinstance(inner.func, ast.Name):
                return inner.func.id in ("select", "insert", "update", "delete", "func")
            if not isinstance(inner.func, ast.Attribute):
                return False
            inner = inner.func.value
        elif isinstance(inner, ast.Attribute):
            inner = inner.value
        else:
            return False
    return False


def _operator(call: ast.Call, scope: Scope, speller: Speller) -> Iterator[Event]:
    """Yield what an operator of a scheduler runs: it is a task of its own, and commits by itself."""
    at = speller.span(call)[0]
    yield Mark("COMMIT", at)
    others = tuple(each.value for each in call.keywords if each.arg in ("parameters", "params", "op_kwargs"))
    into = _destination(call, speller)
    for each in call.keywords:
        value = each.value
        if each.arg == "configuration":
            value = _inside(value, "query") or value
        elif each.arg not in _SQL_KEYWORDS:
            continue
        for text in _texts(value, scope):
            spelled = speller.spelled(text)
            if spelled is not None and _STATEMENT.match(spelled.text):
                yield SqlCall(call, _written_into(into, spelled), others)
    yield Mark("COMMIT", at)


def _destination(call: ast.Call, speller: Speller) -> str:
    """Return the words of SQL for where BigQuery puts the rows of a query; empty where the call does not say."""
    given = {each.arg: each.value for each in call.keywords if each.arg is not None}
    query = _inside_of(given["configuration"], "query") if "configuration" in given else None
    if isinstance(query, ast.Dict):
        table, way = _inside_of(query, "destinationTable"), _inside_of(query, "writeDisposition")
        table = _inside_of(table, "tableId") if table is not None else None
    else:
        table, way = given.get("destination_dataset_table"), given.get("write_disposition")
    name, said = (speller.spelled(each) if each is not None else None for each in (table, way))
    verb = _DISPOSITIONS.get(said.text if said is not None else "")
    if name is not None and "$" in name.text and verb != _DISPOSITIONS["WRITE_APPEND"]:
        return ""  # the partition that is named is replaced
    written = re.sub(r"\W+", "_", name.text.rpartition(".")[2].partition("$")[0]).strip("_") if name is not None else ""
    return verb % written if verb and written else ""


def _written_into(into: str, spelled: Spelled) -> Spelled:
    """Return a query with the words before it that write its rows to a table."""
    if not into or not re.match(r"(?i)\s*(?:select|with|\()", spelled.text):
        return spelled
    whole = Spelled(text=into, places=[(0, spelled.places[0][1])], fields=spelled.fields)
    _copy(spelled, 0, len(spelled.text), whole)
    return whole


def _inside_of(node: ast.expr, key: str) -> ast.expr | None:
    """Return what a dictionary has below a key."""
    if not isinstance(node, ast.Dict):
        return None
    items = zip(node.keys, node.values, strict=True)
    return next((value for each, value in items if isinstance(each, ast.Constant) and each.value == key), None)


def _inside(node: ast.expr, key: str) -> ast.expr | None:
    """Return the text below a key of nested dictionaries."""
    found: ast.expr | None = node
    while isinstance(found, ast.Dict):
        items = zip(found.keys, found.values, strict=True)
        found = next((value for each, value in items if isinstance(each, ast.Constant) and each.value == key), None)
    return found


def may_write(text: str) -> bool:
    """Whether a text has a word that changes something."""
    return _WRITES.search(text) is not None
