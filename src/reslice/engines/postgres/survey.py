"""What a PostgreSQL database says about tables that no contract names yet. Nothing is written.

How many rows a table has is what the planner thinks, from the size of its files: a large table is never counted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from reslice.engines import query as query_text
from reslice.engines import sql, survey
from reslice.engines.postgres.catalog import BASE_TYPE, KIND, TYPE, TYPES, select_columns
from reslice.engines.postgres.target import KINDS, closed, described, resolve
from reslice.engines.postgres.types import family_of
from reslice.engines.sql import quote
from reslice.engines.survey import Look, SqlSurvey
from reslice.tables import Column, Target

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession

_COLUMNS = f"""
SELECT current_database(), n.nspname, c.relname, c.relkind, a.attname, {TYPE}, {BASE_TYPE}, {KIND}
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid{TYPES}
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND a.attnum > 0 AND NOT a.attisdropped
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND NOT EXISTS (
        SELECT 1 FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_attribute AS l ON l.attrelid = r.oid
        WHERE r.relnamespace = n.oid AND r.relname = 'runs' AND l.attname = 'contract_digest'
    )
ORDER BY n.nspname, c.relname, a.attnum
"""

_INDEXED = """
SELECT a.attname
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = CAST($name AS regclass) AND m.amname = 'btree' AND i.indisvalid AND i.indpred IS NULL
"""


class PostgresSurvey(SqlSurvey):
    """Describes and profiles tables of one session's database."""

    part: ClassVar[int] = 5

    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session)
        self._postgres = session

    def find(self, name: str) -> Target | None:
        """Describe a table or view by name; None when there is none."""
        with self._session.translated(None, f"what {name} is"):
            found = resolve(self._session, name) or closed(self._session, name)
            return None if found is None else described(self._session, found)

    def relations(self) -> tuple[Target, ...]:
        """Return the tables and views that this role may read with their columns alone, those of ledgers left out."""
        with self._session.translated(None, "the tables of the database"):
            rows = self._session.execute(_COLUMNS)
        tables: dict[tuple[str, str, str, str], list[Column]] = {}
        for catalog, schema, table, relkind, name, type_text, base, kind in rows:
            columns = tables.setdefault((catalog, schema, table, relkind), [])
            columns.append(Column(name, type_text, family_of(base, kind)))
        return tuple(
            Target(catalog, schema, table, KINDS[relkind], tuple(columns))
            for (catalog, schema, table, relkind), columns in tables.items()
        )

    def _look(self, target: Target) -> Look:
        name = sql.target_name(target)
        rows = self._planned(name)
        if rows <= survey.SAMPLE_ROWS and target.kind == "table":
            return Look(name)
        if target.kind not in ("table", "materialised view"):  # what a view holds is not known before it is computed
            return Look(f"(SELECT * FROM {name} LIMIT {self.sample_rows}) AS seen", rows, limit=self.sample_rows)
        indexed = self._session.execute(_INDEXED, {"name": name})
        return Look(self._sample(target, rows), rows, frozenset(row[0] for row in indexed))

    def _planned(self, name: str) -> int:
        """Return how many rows the planner thinks that a relation has."""
        found = self._session.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {name}")[0][0]
        plans = json.loads(found) if isinstance(found, str) else found
        return int(plans[0]["Plan"]["Plan Rows"])

    def _sample(self, target: Target, rows: int) -> str:
        percent = min(max(self.sample_rows / max(rows, 1) * 100, 0.0001), 100)
        return f"{sql.target_name(target)} TABLESAMPLE system ({percent:.4f}) REPEATABLE (1)"

    def _distinct(self, column: Column) -> str:
        return f"count(DISTINCT {self._session.dialect.plain(quote(column.name), column)})"

    def _exact(self, expression: str) -> str:
        is_number = f"NOT {self._session.dialect.not_finite(expression)}"
        return f"CASE WHEN {is_number} THEN CAST(CAST({expression} AS text) AS numeric) END"

    def _has_scale(self, name: str, digits: int) -> str:
        text = f"CAST(CAST({name} AS text) AS numeric)"
        return f"round({text}, {digits}) = {text}"

    def _query_columns(self, body: str, values: dict[str, str]) -> tuple[Column, ...]:
        return select_columns(self._postgres, query_text.subquery(body), values)
