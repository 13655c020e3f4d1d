"""RS602: The clock of the run decides what a task computes.

A scheduler tells each run which interval it is for. A task that asks the clock instead computes today's range whenever
it runs: a retry after midnight writes another day, and a backfill of last month writes today, again and again.

Bad (python):

    from datetime import datetime
    from airflow.sdk import task
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    @task
    def load():
        day = datetime.now().strftime("%Y-%m-%d")
        PostgresHook("shop").run([
            f"delete from daily_orders where order_date = '{day}'",
            f"insert into daily_orders select order_date, count(*) from orders where order_date = '{day}' group by 1",
        ])

Good (python):

    from airflow.sdk import task
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    @task
    def load(data_interval_start=None):
        day = data_interval_start.strftime("%Y-%m-%d")
        PostgresHook("shop").run([
            f"delete from daily_orders where order_date = '{day}'",
            f"insert into daily_orders select order_date, count(*) from orders where order_date = '{day}' group by 1",
        ])
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reslice.audit.finding import Sort
from reslice.audit.python import Module
from reslice.audit.python_calls import SqlCall, may_write
from reslice.audit.python_scope import Scope, name_of
from reslice.audit.rule import Found

HELP = "take the range from the scheduler's data interval, or from arguments"

_CLOCK = re.compile(
    r"(?:^|\.)(?:datetime|date|pendulum|timezone|time|Timestamp|arrow|DateTime)"
    r"\.(?:now|utcnow|today|time|yesterday|tomorrow|now_utc)$"
)
_BARE = frozenset({"utcnow", "days_ago"})
_TEMPLATE = re.compile(r"\{\{[^}]*\b(?:datetime\.(?:datetime\.)?(?:now|utcnow|today)|pendulum\.(?:now|today))\(")
_STAMP = re.compile(
    r"(?i)(?:loaded|updated|created|inserted|modified|processed|run|etl|ingest\w*|audit)_?(?:at|on|time|ts|date)?$"
)
_DEPTH_MAX = 20


def module(module: Module) -> Iterator[Found]:
    """Yield each clock whose value goes into SQL that writes."""
    seen: set[tuple[int, int]] = set()
    for scope, event in module.events:
        if not isinstance(event, SqlCall) or not may_write(event.spelled.text):
            continue
        for node in _clocks(event, scope):
            span = module.speller.span(node)
            if span not in seen:
                seen.add(span)
                text = f"{ast.unparse(node)[:60]} goes into the SQL, and is another day each time"
                yield Found(span, text, Sort.FINDING if module.is_scheduled else Sort.NOTE)
        template = _TEMPLATE.search(event.spelled.text)
        if template is not None:
            span = module.speller.span(event.call)
            yield Found(span, "the template asks the clock, and not the data interval")


def _clocks(event: SqlCall, scope: Scope) -> Iterator[ast.expr]:
    """Yield the calls of a clock that the values of some SQL are made of; those of a stamp are left out."""
    pending = [(each, _name(each), 0) for each in (*event.spelled.fields, *event.given)]
    while pending:
        node, name, depth = pending.pop()
        if _STAMP.search(name) or depth > _DEPTH_MAX:
            continue
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                said = str(key.value) if isinstance(key, ast.Constant) else ""
                pending.append((value, said or _name(value), depth + 1))
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and _is_clock(each):
                yield each
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                pending += [(value, each.id, depth + 1) for value in scope.values(each) if value is not node]


def _name(node: ast.expr) -> str:
    return name_of(node).rpartition(".")[2]


def _is_clock(call: ast.Call) -> bool:
    name = name_of(call.func)
    return _CLOCK.search(name) is not None or name.rpartition(".")[2] in _BARE
