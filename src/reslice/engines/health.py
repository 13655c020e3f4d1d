"""What doctor asks of a database about a target, as far as engines ask it alike. Nothing is written.

No source is evaluated, and a question about rows is one pass over the table, grouped in the database. What differs is
how a database describes itself, and what there is to look at beside a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from reslice import ledger
from reslice.contract import Contract, Method, SqlFile, StampValue
from reslice.engines import query as query_text
from reslice.engines import sql
from reslice.engines.affected import FIRST_INSTANT
from reslice.engines.records import Records
from reslice.engines.refusals import other_ledgers
from reslice.engines.session import SqlSession
from reslice.engines.sql import quote
from reslice.engines.view import is_up_to_date
from reslice.errors import ResliceError
from reslice.findings import Finding
from reslice.fingerprint import columns_of
from reslice.health import (
    KeptRows,
    LedgerHealth,
    Leftover,
    MovedSlice,
    Observation,
    Place,
    RepeatedKeys,
    Rights,
    RowHealth,
)
from reslice.ledger.texts import dump, instant, utc
from reslice.ranges import Moment, Range, Scope, moment_from_column
from reslice.tables import Column, Target
from reslice.values import Fingerprint, State

LEFTOVERS_MAX = 20
FUNCTIONS = ("md5", "concat_ws", "left", "replace", "count", "sum", "coalesce")
"""The functions that fingerprints are made with."""

_ASKED = {
    "runs": {"id", "number", "table_name", "kind", "state", "range_text", "range_first", "range_last", "slices", "unit",
             "requested_at", "kept_table", "fingerprint_columns"},
    "run_slices": {"run_id", "slice", "state", "fingerprint_base", "fingerprint_after", "published_at"},
}  # fmt: skip
"""The columns of the ledger that the questions to it need."""


class SqlHealth(ABC):
    """Answers the questions of doctor from one session's database."""

    stand_in: str
    """What may stand in for a function of the database, as it is called where it is dropped."""
    hour_cut: str
    """How a source cuts instants to hours, so that two hours which a clock shows alike stay two."""
    cut_at_risk: str
    """What `date_trunc('hour', …)` makes one hour of, where a clock shows two alike."""

    def __init__(self, session: SqlSession, records: Records) -> None:
        self._session = session
        self._records = records

    @abstractmethod
    def place(self) -> Place:
        """Say which database it is, and whether reslice works on this version of it."""

    def server(self) -> tuple[Finding, ...]:
        """Return what there is to say of the database beyond what is asked of every one."""
        return ()

    @abstractmethod
    def _stand_ins(self) -> list[tuple[str]]:
        """Return the names of what stands in for FUNCTIONS, as far as it is found by name."""

    def replaced_functions(self) -> tuple[str, ...]:
        """Name what stands in for functions fingerprints are made with; `?` when none is found by name."""
        with self._session.translated(None, "the functions of fingerprints"):
            found = self._session.execute(sql.known_answer_select(self._session.dialect))[0]
            if (int(found[0]), int(found[1])) == sql.KNOWN_ANSWER:
                return ()
            return tuple(name for (name,) in self._stand_ins()) or ("?",)

    @abstractmethod
    def merges_hours(self, cut: str) -> bool:
        """Whether `date_trunc('hour', cut)` of instants makes one hour of two that a clock shows alike."""

    @abstractmethod
    def rights(self, contract: Contract, target: Target) -> Rights:
        """Say what the connection may do with the target, and what a run needs beside it."""

    def describe(self, contract: Contract, target: Target, scope: Scope, query: SqlFile) -> tuple[Column, ...]:
        """Return the columns that a SQL file would return, in the contract's spelling; it is not evaluated.

        Raises Misused[source_invalid] when the database cannot understand it.
        """
        if query is contract.affected:
            body, values = query_text.since(query, FIRST_INSTANT)
        else:
            body, values = query_text.over_range(self._session.dialect, contract, target, scope.hull, query)
        try:
            self._session.check_select(query, body)
            self._session.pin(contract)
            return self._columns_of(query_text.subquery(body), values, contract)
        except self._session.driver_error as error:
            self._session.roll_back()
            raise self._session.query_failed(contract, query, error) from error

    @abstractmethod
    def _columns_of(self, select: str, values: Mapping[str, Any], contract: Contract) -> tuple[Column, ...]:
        """Return the columns that a SELECT would return, which is not evaluated."""

    # --- keys and neighbours ----------------------------------------------------------------------------------------

    def key_statement(self, contract: Contract, target: Target) -> str:
        """Return the DDL of a unique key on the grain; with versions, the run that wrote them is part of it."""
        columns = [column.name for column in contract.grain]
        if contract.method is Method.APPEND_VERSION:
            columns += [stamp.column for stamp in contract.stamps if stamp.value is StampValue.RUN_ID]
        return self._key(contract, target, columns)

    @abstractmethod
    def _key(self, contract: Contract, target: Target, columns: list[str]) -> str:
        """Return the DDL of a unique key on columns."""

    def null_safe_keys(self, target: Target) -> tuple[frozenset[str], ...]:
        """Return the unique keys of the target to which NULL is a value like any other."""
        return ()

    def key_is_null_safe(self, contract: Contract, target: Target) -> bool:
        """Whether the key of `key_statement` holds rows apart whose key has a NULL that the contract allows."""
        return False

    @abstractmethod
    def views(self, target: Target) -> tuple[str, ...]:
        """Name the views that read the target, ours left out."""

    def table(self, contract: Contract, target: Target) -> tuple[Finding, ...]:
        """Return what there is to say of the target beyond what is asked of every one."""
        return ()

    def current_view(self, contract: Contract, target: Target) -> bool | None:
        """Whether the view of the current versions is as the contract needs it; None when it is not there."""
        with self._session.translated(contract, "the view of the current versions"):
            return is_up_to_date(self._session, contract, target)

    # --- rows -------------------------------------------------------------------------------------------------------

    def rows(self, contract: Contract, target: Target) -> RowHealth:
        """Look at every row once, and once more for repeated keys where no unique key rules them out."""
        dialect, column = self._session.dialect, sql.slice_column(contract, target)
        strict = [each.name for each in contract.grain if each.name != column.name and not each.nulls_allowed]
        value = dialect.plain(quote(column.name), column)
        off = f"({value} IS NOT NULL AND {dialect.off_unit(value, column, contract.slice)})"
        nulls = "".join(f", count(*) FILTER (WHERE {quote(name)} IS NULL)" for name in strict)
        with self._session.translated(contract, f"the rows of {target.resolved}"):
            self._session.pin(contract)
            rows, slice_nulls, off_unit, example, *missing = self._session.execute(
                f"SELECT count(*), count(*) FILTER (WHERE {value} IS NULL), count(*) FILTER (WHERE {off}),"
                f" CAST(min({dialect.shown(value, column, None)}) FILTER (WHERE {off}) AS VARCHAR){nulls}"
                f" FROM {sql.relation(target)}"
            )[0]
            repeated = None if self._is_unique(contract, target) else self._repeated(contract, target, column)
        found = {name: count for name, count in zip(strict, missing, strict=True) if count}
        return RowHealth(rows, slice_nulls, off_unit, example or "", found, repeated)

    def _is_unique(self, contract: Contract, target: Target) -> bool:
        """Whether a unique key over columns that are never NULL rules repeated keys out."""
        grain = {column.name for column in contract.grain}
        return not target.current and any(key and key <= grain and key <= target.not_null for key in target.keys)

    def _repeated(self, contract: Contract, target: Target, column: Column) -> RepeatedKeys | None:
        dialect, names = self._session.dialect, [each.name for each in contract.grain]
        keys = sql.column_list(names)
        plain = ", ".join(f"{dialect.plain(quote(name), target.column(name))} AS {quote(name)}" for name in names)
        shown = ", ".join(dialect.shown(quote(name), target.column(name), None) for name in names)
        start = dialect.slice_start(quote(column.name), column, contract.slice)
        ends = ", ".join(dialect.slice_text(f"{word}({start}) OVER ()", column) for word in ("min", "max"))
        found = self._session.execute(
            f"SELECT count(*) OVER (), CAST(sum({sql.ROWS}) OVER () AS BIGINT), {sql.ROWS}, {ends}, {shown}"
            f" FROM (SELECT {keys}, count(*) AS {sql.ROWS} FROM (SELECT {plain} FROM {sql.relation(target)}) AS plain"
            f" GROUP BY {keys} HAVING count(*) > 1) AS repeated ORDER BY {sql.ROWS} DESC, {keys} LIMIT 1"
        )
        if not found:
            return None
        count, rows, times, first, last, *key = found[0]
        words = f"({', '.join('NULL' if each is None else str(each) for each in key)}) {times} times"
        return RepeatedKeys(count, rows, words, *(_label(contract, column, text) for text in (first, last)))

    # --- the ledger -------------------------------------------------------------------------------------------------

    def ledger(self, contract: Contract, target: Target) -> LedgerHealth:
        """Look at the ledger of a target: what there is of it, and the runs that did not come to their end."""
        schema = contract.ledger.schema
        with self._session.translated(contract, "the ledger"):
            present = {(table, column) for table, column, _ in self._session.columns_in(target.catalog, schema)}
            foreign = ledger.foreign_tables(present)
            others = tuple(other_ledgers(self._session, target.catalog, schema, target.resolved))
            exists = "runs" in {table for table, _ in present} and not foreign
            missing = tuple(_missing(present)) if exists else ()
            is_old = any((table, name) not in present for table, names in _ASKED.items() for name in names)
            if not exists or is_old:
                return LedgerHealth(exists, missing, foreign, others, is_old=exists)
            return self._runs(contract, target, missing, others)

    def _runs(
        self, contract: Contract, target: Target, missing: tuple[str, ...], others: tuple[str, ...]
    ) -> LedgerHealth:
        where, table = ledger.place(target.catalog, contract.ledger.schema), {"table_name": target.resolved}
        of = f"FROM {where}.runs AS r WHERE r.table_name = $table_name"
        count = self._session.execute(f"SELECT count(*) {of}", table)[0][0]
        slices = f"FROM {where}.run_slices AS s WHERE s.run_id = r.id AND s.state = 'published'"
        done = f"(SELECT count(*) {slices}) AS published"
        unfinished = self._session.execute(
            f"SELECT id, range_text, slices, {done} {of} AND state = '{State.REQUESTED}'"
            f" ORDER BY number DESC LIMIT {LEFTOVERS_MAX}",
            table,
        )
        covering = (
            f"SELECT 1 FROM {where}.runs AS l WHERE l.table_name = r.table_name AND l.number > r.number"
            " AND l.kind = 'run' AND l.state IN ('published', 'unchanged')"
            " AND l.range_first <= r.range_first AND l.range_last >= r.range_last"
        )
        partly = self._session.execute(
            f"SELECT id, range_text, slices, published FROM (SELECT r.*, {done} {of} AND state = '{State.FAILED}'"
            f" AND kind = 'run' AND NOT EXISTS ({covering})) AS failed"
            f" WHERE published > 0 ORDER BY number DESC LIMIT {LEFTOVERS_MAX}",
            table,
        )
        return LedgerHealth(
            exists=True,
            missing=missing,
            others=others,
            runs=count,
            unfinished=tuple(
                Leftover(run_id, text, slices, published, self._is_alive(contract, run_id))
                for run_id, text, slices, published in unfinished
            ),
            partly=tuple(Leftover(*row) for row in partly),
            kept=self._kept(where, target),
        )

    def _is_alive(self, contract: Contract, run_id: str) -> bool:
        return any(run.alive for run in self._records.find_runs(contract.ledger.schema, run_id))

    def _kept(self, where: str, target: Target) -> KeptRows:
        tables = self._session.execute(
            f"SELECT DISTINCT kept_table FROM {where}.runs WHERE table_name = $table_name AND kept_table IS NOT NULL",
            {"table_name": target.resolved},
        )
        rows, runs, oldest = 0, 0, ""
        for (kept,) in tables:
            try:
                found = self._session.execute(
                    f"SELECT count(*), count(DISTINCT k.run), {utc('min(r.requested_at)')}"
                    f" FROM (SELECT {quote(ledger.KEPT_RUN)} AS run FROM {kept}) AS k"
                    f" LEFT JOIN {where}.runs AS r ON r.id = k.run"
                )
            except self._session.not_understood:  # dropped by hand
                self._session.roll_back()
                continue
            rows, runs = rows + found[0][0], runs + found[0][1]
            oldest = min(filter(None, (oldest, found[0][2] or "")), default="")
        return KeptRows(rows, runs, instant(oldest or None))

    # --- other writers ----------------------------------------------------------------------------------------------

    def moved(self, contract: Contract, target: Target) -> tuple[MovedSlice, ...]:
        """Return the slices whose rows are no longer those that the last run of them left, in order."""
        with self._session.translated(contract, f"the slices of {target.resolved}"):
            left = dict(self._left(contract, target))
            if not left:
                return ()
            self._session.pin(contract)
            scope = Scope.of(Range(contract.slice.unit, contract.slice.timezone, min(left), max(left)))
            now = self._now(contract, target, scope)
        return tuple(
            MovedSlice(scope.label(moment), run_id, fingerprint, now.get(moment, Fingerprint()))
            for moment, (run_id, fingerprint) in sorted(left.items())
            if fingerprint != now.get(moment, Fingerprint())
        )

    def _left(self, contract: Contract, target: Target) -> Iterator[tuple[Moment, tuple[str, Fingerprint]]]:
        """Yield each slice with the last run that wrote it, or found it equal, and what it then held."""
        where = ledger.place(target.catalog, contract.ledger.schema)
        rows = self._session.execute(
            "SELECT slice, id, known FROM (SELECT s.slice, r.id, r.unit, r.fingerprint_columns,"
            " CASE s.state WHEN 'published' THEN s.fingerprint_after ELSE s.fingerprint_base END AS known,"
            " row_number() OVER (PARTITION BY s.slice"
            " ORDER BY coalesce(s.published_at, r.requested_at) DESC, r.number DESC) AS place"
            f" FROM {where}.run_slices AS s JOIN {where}.runs AS r ON r.id = s.run_id"
            " WHERE r.table_name = $table_name AND r.kind IN ('run', 'restore') AND (s.state = 'published'"
            " OR (s.state IN ('unchanged', 'empty') AND r.state IN ('published', 'unchanged', 'restored')))) AS last"
            " WHERE place = 1 AND known IS NOT NULL AND unit = $unit AND fingerprint_columns = $columns",
            {
                "table_name": target.resolved,
                "unit": contract.slice.unit.value,
                "columns": dump(list(columns_of(contract))),
            },
        )
        for label, run_id, known in rows:
            try:
                yield Scope.parse(label, contract.slice).hull.start, (run_id, Fingerprint.parse(known))
            except ResliceError:  # the zone was another one then
                continue

    def _now(self, contract: Contract, target: Target, scope: Scope) -> dict[Moment, Fingerprint]:
        column = sql.slice_column(contract, target)
        select = sql.base_select(self._session.dialect, contract, target, scope)
        text = self._session.dialect.slice_text("slice", column)
        rows = self._session.execute(
            f"SELECT {text}, row_count, total FROM (SELECT {sql.SLICE} AS slice, count(*) AS row_count,"
            f" sum({sql.HASH}) AS total FROM ({select}) AS live GROUP BY 1) AS slices"
        )
        found: dict[Moment, Fingerprint] = {}
        for value, count, total in rows:
            moment = moment_from_column(value, column.family.value, scope.unit, scope.zone)
            found[moment] = Fingerprint(int(count), int(total))
        return found

    @abstractmethod
    def probe(self, contract: Contract, target: Target) -> tuple[Observation, ...]:
        """Try what the engine does, in a place of its own that is gone afterwards, whatever happens."""


def _missing(present: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the tables and columns that the ledger of this version has and this one lacks."""
    tables = {table for table, _ in present}
    for table in ledger.TABLES:
        if table.name not in tables:
            yield table.name
            continue
        yield from (
            f"{table.name}.{column.name}" for column in table.columns if (table.name, column.name) not in present
        )


def _label(contract: Contract, column: Column, text: str | None) -> str:
    """Return a slice as it is typed; what is no slice, as it is."""
    unit, zone = contract.slice.unit, contract.slice.timezone
    try:
        moment = moment_from_column(text or "", column.family.value, unit, zone)
    except ValueError:
        return str(text)
    return Range(unit, zone, moment, moment).text
