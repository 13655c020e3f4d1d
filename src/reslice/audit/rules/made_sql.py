"""RS603: SQL that is only known when the program runs.

The statement that is executed is made elsewhere, or from parts of which none is written here. What it does to which
table cannot be read, so nothing is said of it, neither that it is safe nor that it is not. `reslice prove` runs a
program twice and looks instead.

Bad (python):

    import psycopg

    def run_job(url, job):
        with psycopg.connect(url) as connection:
            connection.execute(job.statement())

Good (python):

    import psycopg

    def clear(url):
        with psycopg.connect(url) as connection:
            connection.execute("delete from daily_orders where order_date = %s", ("2026-01-01",))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from reslice.audit.finding import Sort
from reslice.audit.python import Module
from reslice.audit.python_calls import UnknownCall
from reslice.audit.rule import Found

HELP = "run it twice and look:  reslice prove --table TABLE --grain COLUMNS -- COMMAND"


def module(module: Module) -> Iterator[Found]:
    """Yield each call that runs SQL of which no word is known."""
    for _, event in module.events:
        if isinstance(event, UnknownCall):
            said = " ".join(ast.unparse(event.argument).split())
            shown = said if len(said) <= 60 else f"{said[:60]}…"
            yield Found(module.speller.span(event.argument), f"{shown} is made when the program runs", Sort.UNKNOWN)
