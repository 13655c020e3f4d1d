"""What a DuckDB database says about a table that no contract names yet. Nothing is written."""

from __future__ import annotations

from pathlib import Path

from reslice.engines import query as query_text
from reslice.engines import sql
from reslice.engines.duckdb.dialect import family_of
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.duckdb.target import described, resolve
from reslice.engines.sql import quote
from reslice.engines.survey import Look, SqlSurvey
from reslice.tables import Column, Target


class DuckDBSurvey(SqlSurvey):
    """Describes and profiles tables of one session's database: every row is counted, and takes little time."""

    def __init__(self, session: DuckDBSession, path: Path | None) -> None:
        super().__init__(session)
        self._path = path

    def find(self, name: str) -> Target | None:
        """Describe a table or view by name; None when there is none."""
        with self._session.translated(None, f"what {name} is"):
            found = resolve(self._session, name)
            return None if found is None else described(self._session, found, (), self._path)

    def relations(self) -> tuple[Target, ...]:
        """Return the tables and views of the current database with their columns alone, those of ledgers left out."""
        with self._session.translated(None, "the tables of the database"):
            rows = self._session.execute(
                "SELECT c.database_name, c.schema_name, c.table_name, c.column_name, c.data_type, v.view_name IS NULL"
                " FROM duckdb_columns() AS c LEFT JOIN duckdb_views() AS v ON v.database_name = c.database_name"
                " AND v.schema_name = c.schema_name AND v.view_name = c.table_name"
                " WHERE c.database_name = current_database() AND NOT c.internal AND c.schema_name NOT IN (SELECT"
                " schema_name FROM duckdb_columns() WHERE table_name = 'runs' AND column_name = 'contract_digest')"
                " ORDER BY c.schema_name, c.table_name, c.column_index"
            )
        tables: dict[tuple[str, str, str, bool], list[Column]] = {}
        for catalog, schema, table, name, type_text, is_table in rows:
            columns = tables.setdefault((catalog, schema, table, is_table), [])
            columns.append(Column(name, type_text, family_of(type_text)))
        return tuple(
            Target(catalog, schema, table, "table" if is_table else "view", tuple(columns))
            for (catalog, schema, table, is_table), columns in tables.items()
        )

    def _look(self, target: Target) -> Look:
        return Look(sql.target_name(target))

    def _sample(self, target: Target, rows: int) -> str:
        percent = max(self.sample_rows / rows * 100, 0.01)
        return f"{sql.target_name(target)} TABLESAMPLE system({percent:.4f} PERCENT) REPEATABLE (1)"

    def _distinct(self, column: Column) -> str:
        return f"approx_count_distinct({quote(column.name)})"

    def _exact(self, expression: str) -> str:
        return f"TRY_CAST({expression} AS DECIMAL(38, 6))"

    def _has_scale(self, name: str, digits: int) -> str:
        return f"round({name}, {digits}) = {name}"

    def _query_columns(self, body: str, values: dict[str, str]) -> tuple[Column, ...]:
        rows = self._session.execute(f"DESCRIBE {query_text.subquery(body)}", values)
        return tuple(Column(name, type_text, family_of(type_text)) for name, type_text, *_ in rows)
