"""What doctor asks of a DuckDB database about a target, beyond what engines ask alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import duckdb

from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.duckdb.dialect import family_of
from reslice.engines.duckdb.probe import probed
from reslice.engines.duckdb.session import spelled
from reslice.engines.health import FUNCTIONS, SqlHealth
from reslice.engines.sql import quote
from reslice.health import Observation, Place, Rights
from reslice.tables import Column, Target

OLDEST, TESTED = (1, 5, 6), ("1.5", "2.0")
"""The oldest version that reslice works on, and the series it is tested with."""

_OF_UTC = re.compile(r"(?i)time\s+zone\s+'utc'|timezone\s*\(\s*'utc'")


class DuckDBHealth(SqlHealth):
    """Answers the questions of doctor from one session's database."""

    stand_in = "macro"
    hour_cut = "time_bucket(INTERVAL 1 HOUR, …)"
    cut_at_risk = "instants"

    def place(self) -> Place:
        """Say which database it is, and whether reslice works on this version of it."""
        version = duckdb.__version__
        numbers = tuple(int(text) for text in re.findall(r"\d+", version)[:3])
        series = ".".join(version.split(".")[:2])
        oldest = ".".join(map(str, OLDEST))
        upgrade = f"pip install 'duckdb>={oldest}'"
        return Place(self._session.shown, version, oldest, TESTED, numbers < OLDEST, series in TESTED, upgrade)

    def _stand_ins(self) -> list[tuple[str]]:
        rows = self._session.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"
            " AND function_type IN ('macro', 'table_macro') AND list_contains($names, lower(function_name))"
            " ORDER BY 1",
            {"names": list(FUNCTIONS)},
        )
        return [(name,) for (name,) in rows]

    def merges_hours(self, cut: str) -> bool:
        """Whether `date_trunc('hour', cut)` makes one hour of two; DuckDB cuts the wall time of an instant."""
        return _OF_UTC.search(cut) is None

    def rights(self, contract: Contract, target: Target) -> Rights:
        """Say what the connection may do; a file that cannot be written is said of the target."""
        return Rights("file and folder may be written")

    def _columns_of(self, select: str, values: Mapping[str, Any], contract: Contract) -> tuple[Column, ...]:
        rows = self._session.execute(f"DESCRIBE {select}", values)
        return tuple(Column(spelled(row[0], contract.columns), row[1], family_of(row[1])) for row in rows)

    def _key(self, contract: Contract, target: Target, columns: list[str]) -> str:
        name = quote(f"{target.table}_grain")
        return f"CREATE UNIQUE INDEX {name} ON {sql.dotted(target.schema, target.table)} ({sql.column_list(columns)})"

    def views(self, target: Target) -> tuple[str, ...]:
        """Name the views whose SQL has the table's name in it as a word."""
        with self._session.translated(None, "the views of the database"):
            rows = self._session.execute(
                "SELECT schema_name || '.' || view_name, sql FROM duckdb_views()"
                " WHERE NOT internal AND database_name = $catalog ORDER BY 1",
                {"catalog": target.catalog},
            )
        word = re.compile(rf"(?<!\w){re.escape(target.table)}(?!\w)", re.IGNORECASE)
        own = f"{target.schema}.{versions.view_name(target)}" if target.current else ""
        return tuple(
            name.removeprefix("main.")
            for name, text in rows
            if word.search(_body(text)) and name.lower() != own.lower()
        )

    def probe(self, contract: Contract, target: Target) -> tuple[Observation, ...]:
        """Try in a database of its own, in memory, what this version of DuckDB does."""
        return probed(contract, sql.slice_column(contract, target))


def _body(text: str) -> str:
    """Return the SQL of a view without its own name."""
    return re.split(r"\sAS\s", text, maxsplit=1, flags=re.IGNORECASE)[-1]
