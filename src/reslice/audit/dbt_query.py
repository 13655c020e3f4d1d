"""The query of a dbt model in its first and its incremental run, and the write that the incremental run makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from reslice.audit.aggregate import is_aggregate
from reslice.audit.dbt_adapter import DIALECTS, strategy_of, way_of
from reslice.audit.dbt_grain import grain_by
from reslice.audit.dbt_model import BUILT_IN, Model
from reslice.audit.known import Known
from reslice.audit.matching import Match
from reslice.audit.read_query import ReadQuery
from reslice.audit.script import Script, Statement, script_of
from reslice.audit.text import Text
from reslice.audit.write import Way, Write
from reslice.reading import parse
from reslice.reading.jinja import UNKNOWN
from reslice.reading.marks import MARK, Marked, marked
from reslice.reading.outputs import JobQuery

_ALONE = re.compile(rf"(?m)^[ \t]*(?:{MARK.pattern}[ \t]*)+$")


def read_model(
    text: Text, dialect: str | None, known: Known, variables: Mapping[str, object]
) -> tuple[Script, list[tuple[int, str]]]:
    """Return the statements of a model's text in an incremental run, and what could not be read: where, and why.

    A call that stands on lines of its own may write anything, such as a condition more: where the text cannot be read
    with it, it is read without.
    """

    def mark(source: str, of: str) -> Marked:
        return marked(source, of, variables=variables, has_placeholders=False)

    def without(source: str, of: str) -> Marked:
        found = mark(source, of)
        found.text = _ALONE.sub(lambda line: " " * len(line[0]), found.text)
        return found

    read = parse.read(text.path, text.text, dialect, mark=mark)
    if read.unread or not any(isinstance(each, exp.Query) for each in read.statements):
        second = parse.read(text.path, text.text, dialect, mark=without)
        if not second.unread and any(isinstance(each, exp.Query) for each in second.statements):
            read = second
    unread = [(read.marked.origin(at), why) for at, why in zip(read.unread_at, read.unread, strict=True)]
    return script_of(read, text, known=known), unread


def write_of(model: Model, known: Known, variables: Mapping[str, object]) -> list[tuple[int, str]]:
    """Let a model know how its incremental run writes, and return what could not be read of it."""
    model.why_unknown = _unknown(model)
    if model.why_unknown or not model.is_incremental:
        return []
    dialect = DIALECTS.get(model.adapter or "")
    script, unread = read_model(model.text, dialect, known, variables)
    keys = model.keys
    assert keys is not None, "what is not known was told above"
    way = way_of(model.adapter, model.strategy, has_key=bool(keys))
    queries = [each for each in script.statements if isinstance(each.node, exp.Query)]
    if unread or way is None:
        return unread
    if not queries:
        model.why_unknown = f"its query is written by {_written_by(script)}, which is not read"
        return []
    statement = queries[-1]
    assert isinstance(statement.node, exp.Query), "it was chosen as one"
    query = ReadQuery(statement.node, script.dialect)
    first = marked(model.text.text, script.dialect, is_incremental=False, variables=variables, has_placeholders=False)
    model.is_filtered = first.text != script.marked.text
    model.write = _write(model, script, statement, query, way, keys)
    return []


def _write(
    model: Model, script: Script, statement: Statement, query: JobQuery, way: Way, keys: tuple[str, ...]
) -> Write:
    grain = grain_by(query, keys)
    # What is deleted by a key may be single events, where it is not known what the query has one row of.
    is_known = grain is not None or way is not Way.KEYED
    config = {key: each.value for key, each in model.config.items()} | {"strategy": model.strategy}
    return Write(
        script,
        statement,
        model.name,
        way,
        query,
        is_aggregate(query) and is_known,
        model.span,
        grain=grain,
        keys=keys if way in (Way.UPSERT, Way.KEYED) else (),
        matches=tuple(Match(key, exp.column(key)) for key in keys) if way in (Way.UPSERT, Way.KEYED) else (),
        is_atomic=True,
        config=config,
    )


def _unknown(model: Model) -> str:
    """Return why it is not known how a model writes; empty where it is."""
    kept = model.materialized
    if kept is UNKNOWN:
        return "how it is materialized is given by what is not read"
    if not isinstance(kept, str) or kept.lower() not in BUILT_IN:
        return f"what the materialization {kept} does with the rows that are there is not read"
    if kept.lower() != "incremental":
        return ""
    strategy = model.get("incremental_strategy")
    if strategy is UNKNOWN:
        return "its incremental_strategy is given by what is not read"
    if model.keys is None:
        return "its unique_key is given by what is not read"
    model.strategy = strategy_of(
        model.adapter, strategy if isinstance(strategy, str) else None, has_key=bool(model.keys)
    )
    if way_of(model.adapter, model.strategy, has_key=bool(model.keys)) is None and model.strategy != "microbatch":
        return f"what the strategy {model.strategy} does with the rows that are there is not read"
    return ""


def _written_by(script: Script) -> str:
    calls = [each for each in script.marked.marks.values() if "(" in each]
    return calls[0] if calls else "a template"
