"""RS202: The delete and the insert do not commit together.

The rows of the range are removed and committed before the new ones are there. Whoever reads in between sees an empty
range, and so does everybody when the insert fails or the job is killed: the delete stands, and nothing says what is
missing. BEGIN has to come before the DELETE, and COMMIT after the INSERT. Some databases commit by themselves at each
CREATE, ALTER, DROP or TRUNCATE in between; others know no transaction over two statements at all, and there a statement
that replaces in one step is the way: INSERT OVERWRITE of the partition, INSERT REPLACE WHERE, MERGE with a delete.

Bad (postgres):

    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit

Bad (mysql):

    start transaction;
    delete from daily_orders where order_date between :start and :end;
    create table stage as select * from orders where order_date between :start and :end;
    insert into daily_orders select order_date, channel, count(*) from stage group by order_date, channel;
    commit

Good (databricks):

    insert into daily_orders replace where order_date between :start and :end
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.rules.emptied_for_range import is_emptied_for_range
from reslice.audit.scope import is_stage_name, setting
from reslice.audit.script import Statement
from reslice.audit.transactions import DDL_COMMITS, ONE_STATEMENT
from reslice.audit.write import Way, Write

HELP = "put BEGIN before the delete and COMMIT after the insert, or let reslice init write the contract that does it"
_HELP_BY_DIALECT = {
    "spark": "overwrite the partitions of the range in one statement: INSERT OVERWRITE … PARTITION",
    "databricks": "replace the range in one statement: INSERT INTO … REPLACE WHERE",
    "hive": "overwrite the partitions of the range in one statement: INSERT OVERWRITE … PARTITION",
    "trino": "replace the range in one MERGE, or write to a table aside and swap it in",
    "presto": "write to a table aside and swap it in",
    "athena": "replace the range in one MERGE of an Iceberg table, or write to a table aside",
    "clickhouse": "fill a table aside and put it in with ALTER TABLE … REPLACE PARTITION",
}
_REPLACING = frozenset({Way.RANGED, Way.KEYED, Way.EMPTIED})


def write(write: Write) -> Iterator[Found]:
    """Yield a delete that commits before the insert that belongs to it."""
    if write.way not in _REPLACING or write.delete is None or isinstance(write.delete.node, exp.TruncateTable):
        return
    if write.script.is_apart(_delete_span(write)[0], write.span[0]):
        return
    if write.is_atomic is False and not is_emptied_for_range(write) and not is_stage_name(write.table):
        yield Found(_delete_span(write), _why(write, write.delete), help=_HELP_BY_DIALECT.get(write.dialect, ""))
    elif write.is_atomic and write.dialect == "tsql" and _goes_on_after_errors(write):
        yield Found(
            write.span,
            "an error of the insert ends this statement alone in T-SQL: COMMIT follows, and the range stays empty",
            Sort.NOTE,
            "say SET XACT_ABORT ON first, or roll back in a CATCH",
        )


def _delete_span(write: Write) -> tuple[int, int]:
    """Return where the first words of the delete stand."""
    assert write.delete is not None, "only what deletes is judged"
    return write.script.span(exp.Placeholder(), write.delete)


def _why(write: Write, delete: Statement) -> str:
    table = write.table
    after = f"if the insert fails or the job is killed, {table} stays without these rows"
    if write.dialect in ONE_STATEMENT:
        return f"each statement commits by itself in {write.dialect}: {after}"
    between = _between(write, delete)
    committing = next((each for each in between if _commits(each, write.dialect)), None)
    if committing is not None:
        return f"{_first_words(committing.node)} commits the delete before the insert: {after}"
    if delete.transaction is None and write.statement.transaction is None:
        return f"no transaction holds the delete and the insert together: {after}"
    if delete.transaction is None:
        return f"the delete commits by itself, before the transaction of the insert: {after}"
    return f"the delete is committed before the insert begins: {after}"


def _between(write: Write, delete: Statement) -> list[Statement]:
    statements = write.script.statements
    first = next((at for at, each in enumerate(statements) if each.base == delete.base), write.position)
    return list(statements[first + 1 : write.position])


def _commits(statement: Statement, dialect: str) -> bool:
    is_ddl = isinstance(statement.node, exp.Create | exp.Alter | exp.Drop | exp.TruncateTable)
    return is_ddl and statement.transaction is None and (dialect in DDL_COMMITS or dialect == "redshift")


def _first_words(node: exp.Expr) -> str:
    word = "TRUNCATE" if isinstance(node, exp.TruncateTable) else node.key.upper()
    return f"{word} {node.args['kind']}" if node.args.get("kind") else word


def _goes_on_after_errors(write: Write) -> bool:
    text = write.script.text.text.lower()
    has_catch = "begin try" in text or "@@error" in text
    return setting(write.script, "xact_abort") != "on" and not has_catch
