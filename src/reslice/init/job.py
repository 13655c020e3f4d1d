"""The write that a file holds: which table it fills, with which query, and what it says of the rows it replaces."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlglot import exp

from reslice.errors import Failure, Misused
from reslice.reading.marks import MARK, THIS
from reslice.reading.parse import Script, read
from reslice.reading.statements import flat, is_temporary, merged_query, query_in, written_query

FILE_BYTES_LIMIT = 1 << 20
_UNCHANGED = "no file was written"


@dataclass(slots=True)
class Job:
    """One write of one table.

    `columns` are the names it writes by position, None where they are those of the query. `filters` are conditions on
    columns of the table itself: of a DELETE, a partition, a REPLACE WHERE. `partition` are the columns of a partition
    in small letters, and `fixed` those with a value. `keys` are columns that a MERGE, an upsert or dbt tells rows apart
    by. `clocks` are filled with the time.
    """

    name: str
    script: Script
    table: str | None
    query: exp.Query
    columns: tuple[str, ...] | None = None
    is_by_name: bool = False
    filters: list[exp.Expr] = field(default_factory=list)
    fixed: dict[str, exp.Expr] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    keys_why: str = ""
    renames: dict[str, str] = field(default_factory=dict)
    clocks: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    unsure: list[str] = field(default_factory=list)


def read_job(path: Path, dialect: str | None, table: str | None, name: str | None, engine: str = "duckdb") -> Job:
    """Return the write in a file, of `table` when the file holds several; `engine` is the database it is drafted for.

    Raises Misused[nothing_to_draft] when it holds none that computes rows, Misused[usage] when it cannot be read.
    """
    text = _text(path)
    script = read(path.name, text, dialect, engine)
    temporaries: dict[str, exp.Query] = {}
    renamed = _renamed(script)
    writes: list[Job] = []
    for statement in script.statements:
        job = _write(statement, script)
        if job is None:
            continue
        if is_temporary(statement):
            temporaries[_last(job.table or "")] = job.query
            continue
        job.table = renamed.get(_last(job.table or ""), job.table)
        writes.append(job)
    writes = _without_stages(writes, temporaries)
    job = _chosen(writes, script, path, table, name) if writes else _bare(script, path, table, name)
    _take_along(job, temporaries)
    _deletes(job, script)
    job.unsure = [
        *(f"not read: {each}" for each in script.unread),
        *script.unsure,
        *script.marked.unsure,
        *job.unsure,
    ]
    return job


def _text(path: Path) -> str:
    found = ""
    try:
        with path.open("rb") as stream:
            content = stream.read(FILE_BYTES_LIMIT + 1)
        if len(content) <= FILE_BYTES_LIMIT:
            return content.decode("utf-8-sig").replace("\x00", " ")
        found = "larger than 1 MiB"
    except UnicodeDecodeError:
        found = "not UTF-8 text"
    except OSError as error:
        found = f"cannot be read: {error.strerror or 'not a file'}"
    failure = Failure("usage", f"--source {path}", (found,), "reslice init --help")
    raise Misused(str(path), [failure], unchanged=_UNCHANGED)


def _write(statement: exp.Expr, script: Script) -> Job | None:
    """Return the write of a statement; None when it computes no rows for a table."""
    if isinstance(statement, exp.Insert):
        return _insert(statement, script)
    if isinstance(statement, exp.Merge):
        return _merge(statement, script)
    if isinstance(statement, exp.Create) and statement.kind == "TABLE":
        query = query_in(statement.expression)
        table = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
        return None if query is None else Job(script.name, script, table_name(table), query)
    if isinstance(statement, exp.Select) and statement.args.get("into"):
        into = statement.args["into"].this
        query = statement.copy()
        query.set("into", None)
        return Job(script.name, script, table_name(into), query)
    return None


def _insert(statement: exp.Insert, script: Script) -> Job | None:
    query = written_query(statement)
    if query is None:
        return None
    schema = statement.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    columns = tuple(each.name for each in schema.expressions) if isinstance(schema, exp.Schema) else None
    job = Job(script.name, script, table_name(table), query, columns, bool(statement.args.get("by_name")))
    if isinstance(statement.args.get("where"), exp.Expr):
        job.filters.append(statement.args["where"])
    partition = statement.args.get("partition") or (
        table.args.get("partition") if isinstance(table, exp.Table) else None
    )
    for each in partition.expressions if isinstance(partition, exp.Partition) else []:
        job.filters.append(each)
        if isinstance(each, exp.EQ):
            job.fixed[each.this.name] = each.expression
        job.partition = (*job.partition, (each.this.name if isinstance(each, exp.EQ) else each.name).lower())
    conflict = statement.args.get("conflict")
    if isinstance(conflict, exp.OnConflict) and conflict.args.get("conflict_keys"):
        job.keys = tuple(each.name or each.this.name for each in conflict.args["conflict_keys"])
        job.keys_why = "ON CONFLICT"
    return job


def _merge(statement: exp.Merge, script: Script) -> Job | None:
    using = statement.args.get("using")
    query = merged_query(statement)
    alias = using.alias_or_name if isinstance(using, exp.Expr) else ""
    if query is None:
        return None
    job = Job(script.name, script, table_name(statement.this), query, is_by_name=True)
    target = statement.this.alias_or_name
    keys = []
    for condition in flat(statement.args.get("on")):
        sides = [condition.left, condition.right] if isinstance(condition, exp.Binary) else []
        columns = [side for side in sides if isinstance(side, exp.Column)]
        if isinstance(condition, exp.EQ | exp.NullSafeEQ) and len(columns) == 2:
            keys += [column.name for column in columns if column.table.lower() != alias.lower()][:1]
        elif columns:
            job.filters.append(condition)
    job.keys, job.keys_why = tuple(keys), "the MERGE's ON"
    for when in statement.args["whens"].expressions if statement.args.get("whens") else []:
        _inserted(when.args.get("then"), job)
    assert target is not None, "a table has a name, if an empty one"
    return job


def _inserted(then: exp.Expr | None, job: Job) -> None:
    """Take from a MERGE's INSERT which column of the source fills which of the table, and which the clock fills."""
    if not isinstance(then, exp.Insert):
        return
    names = then.this.expressions if isinstance(then.this, exp.Tuple | exp.Schema) else []
    values = then.expression.expressions if isinstance(then.expression, exp.Tuple) else []
    for name, value in zip(names, values, strict=False):
        if isinstance(value, exp.Column):
            job.renames[value.name.lower()] = name.name
        elif is_clock(value):
            job.clocks = (*job.clocks, name.name)


def is_clock(value: exp.Expr) -> bool:
    """Whether a value is the time of the statement."""
    while isinstance(value, exp.Cast | exp.Paren | exp.AtTimeZone):
        value = value.this
    names = (
        "now",
        "getdate",
        "sysdate",
        "sysdatetime",
        "getutcdate",
        "sysutcdatetime",
        "clock_timestamp",
        "localtimestamp",
    )
    if isinstance(value, exp.Anonymous):
        return str(value.this).lower() in (
            *names,
            "transaction_timestamp",
            "statement_timestamp",
            "get_current_timestamp",
        )
    kinds = (exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTimestampLTZ)
    return isinstance(value, kinds) or (isinstance(value, exp.Column) and value.name.lower() in names)


def table_name(table: exp.Expr) -> str:
    """Return a table's name as DuckDB and PostgreSQL write it, without alias or partition."""
    parts = [part for part in (table.args.get("catalog"), table.args.get("db"), table.args.get("this")) if part]
    if not isinstance(table, exp.Table) or not all(isinstance(part, exp.Identifier) for part in parts):
        return table.name
    return ".".join(
        part.name if part.name.isidentifier() else '"' + part.name.replace('"', '""') + '"' for part in parts
    )


def _last(name: str) -> str:
    return name.rpartition(".")[2].strip('"').lower()


def _renamed(script: Script) -> dict[str, str]:
    """Return the tables that the file renames, by their last part: what is built aside and then put in place."""
    found = {}
    for statement in script.statements:
        if isinstance(statement, exp.Alter):
            for action in statement.args.get("actions") or []:
                if isinstance(action, exp.AlterRename):
                    found[_last(table_name(statement.this))] = table_name(action.this)
    return found


def _without_stages(writes: list[Job], temporaries: dict[str, exp.Query]) -> list[Job]:
    """Take out tables that a later write of the file reads: they are stages, and go into its query."""
    kept = []
    for index, job in enumerate(writes):
        name = _last(job.table or "")
        readers = [
            each for each in writes[index + 1 :] if _last(each.table or "") != name and name in _read_by(each.query)
        ]
        if readers:
            temporaries[name] = job.query
        else:
            kept.append(job)
    return kept


def _read_by(query: exp.Expr) -> set[str]:
    return {table.name.lower() for table in query.find_all(exp.Table)}


def _chosen(writes: list[Job], script: Script, path: Path, table: str | None, name: str | None) -> Job:
    """Return the one write that is meant; several tables need a word of the user."""
    by_table: dict[str, list[Job]] = {}
    for job in writes:
        by_table.setdefault(_last(job.table or ""), []).append(job)
    wanted = _last(table) if table is not None else None
    if wanted is None and len(by_table) > 1 and name is not None and name.lower() in by_table:
        wanted = name.lower()
    if wanted is None and len(by_table) > 1:
        names = ", ".join(dict.fromkeys(str(job.table) for job in writes))
        failure = Failure(
            "nothing_to_draft",
            "one table that the file writes",
            (f"{path.name} writes {names}",),
            f"reslice init {names.split(', ')[-1]} --table {names.split(', ')[-1]} --source {path}",
        )
        raise Misused(str(path), [failure], unchanged=_UNCHANGED)
    if wanted is not None and wanted not in by_table and len(by_table) > 1:
        found = f"{path.name} writes {', '.join(by_table)}, and not {table}"
        failure = Failure("nothing_to_draft", f"--table {table}", (found,), "reslice init --help")
        raise Misused(str(path), [failure], unchanged=_UNCHANGED)
    jobs = by_table.get(wanted or "") or next(iter(by_table.values()))
    job = jobs[-1]
    if len(jobs) > 1:
        job.unsure.append(
            f"{len(jobs)} statements write {job.table}; the last one was taken, and the others are left out"
        )
    if wanted is not None and _last(job.table or "") != wanted:
        job.unsure.append(f"the file writes {job.table}; it was taken for {table}")
    if job.table is not None and (MARK.search(job.table) or THIS in job.table):
        job.table = _plain_table(job.table, job, path, name)
    return job


def _plain_table(table: str, job: Job, path: Path, name: str | None) -> str:
    """Return the table's name without placeholders."""
    parts = [part for part in table.split(".") if not MARK.search(part)]
    if not parts or parts[-1] == THIS or MARK.search(table.split(".")[-1]):
        job.unsure.append(f"table: the file names it by {job.script.marked.shown(table)}")
        return name or path.stem
    job.unsure.append(f"table: {job.script.marked.shown(table)} was read as {'.'.join(parts)}")
    return ".".join(parts)


def _bare(script: Script, path: Path, table: str | None, name: str | None) -> Job:
    """Return the SELECT of a model that a tool writes for its user: dbt's, or one whose table is named beside it."""
    queries = [found for each in script.statements for found in [query_in(each)] if found is not None]
    config = script.marked.config
    if not queries or not (script.marked.has_jinja or table is not None):
        raise _nothing(script, path, has_query=bool(queries))
    this = ".".join([*config.get("schema", ())[:1], *(config.get("alias", ())[:1] or (name or path.stem,))])
    job = Job(script.name, script, table or this, queries[-1], is_by_name=True)
    job.keys, job.keys_why = config.get("unique_key", ()), "unique_key"
    if table is None:
        job.unsure.append(f"table: the file does not name the table it fills; {this} is its own name")
    return job


def _nothing(script: Script, path: Path, *, has_query: bool) -> Misused:
    found = "it holds no statement that writes a table from a SELECT"
    kinds = ", ".join(dict.fromkeys(each.key.upper() for each in script.statements))
    words = [f"{found}; it holds {kinds}" if kinds else found, *(f"not read: {each}" for each in script.unread[:3])]
    after = "name the dialect with --dialect" if script.unread else "reslice init --help"
    if has_query:
        after = f"reslice init TARGET --table TABLE --source {path}"
        words.append("a SELECT alone is taken when --table says which table it fills")
    if script.unread:
        after = f"reslice init --source {path} --dialect NAME"
    asked = "an INSERT … SELECT, MERGE, CREATE TABLE AS, or a model with a config"
    return Misused(str(path), [Failure("nothing_to_draft", asked, tuple(words), after)], unchanged=_UNCHANGED)


def _take_along(job: Job, temporaries: dict[str, exp.Query]) -> None:
    """Put the stages that the query reads before it, as WITH; what they read in turn comes first."""
    wanted: list[str] = []

    def visit(query: exp.Expr) -> None:
        for name in sorted(_read_by(query) & set(temporaries)):
            if name not in wanted:
                visit(temporaries[name])
                wanted.append(name)

    visit(job.query)
    if not wanted:
        return
    query = job.query.copy()
    own = query.args.get("with_")
    ctes = [
        exp.CTE(this=temporaries[name].copy(), alias=exp.TableAlias(this=exp.to_identifier(name))) for name in wanted
    ]
    query.set("with_", exp.With(expressions=[*ctes, *([each.copy() for each in own.expressions] if own else [])]))
    for table in query.find_all(exp.Table):
        if table.name.lower() in wanted and table.args.get("db"):
            table.set("db", None)
            table.set("catalog", None)
    job.query = query
    job.unsure.append(f"{', '.join(wanted)} is made by the file itself, and was taken into the source as WITH")


def _deletes(job: Job, script: Script) -> None:
    """Add what the file deletes of the table, and whether it empties it."""
    name = _last(job.table or "")
    for statement in script.statements:
        if isinstance(statement, exp.Delete):
            tables = [statement.this, *(statement.args.get("tables") or [])]
            named = {each.name.lower() for each in tables if isinstance(each, exp.Table)}
            if (name in named or THIS in named) and statement.args.get("where"):
                job.filters += flat(statement.args["where"].this)
            elif name in named:
                job.unsure.append(
                    "the job deletes every row of the table first; a run replaces the slices of its range"
                )
        elif isinstance(statement, exp.TruncateTable) and name in {each.name.lower() for each in statement.expressions}:
            job.unsure.append("the job empties the whole table first; a run replaces the slices of its range")


__all__ = ["Job", "is_clock", "read_job", "replace", "table_name"]
