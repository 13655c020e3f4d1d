"""The view of the current versions in a DuckDB database: whether there is one, whether it is ours, and making it."""

from __future__ import annotations

from reslice.contract import Contract
from reslice.engines import versions
from reslice.engines.session import Session
from reslice.errors import Failure, Refused
from reslice.values import Target


def has_view(session: Session, contract: Contract, target: Target) -> bool:
    """Return whether the view is there; Refused[view_foreign] when something else bears its name."""
    rows = session.execute(
        "SELECT kind, comment FROM (SELECT database_name, schema_name, table_name AS name, 'table' AS kind,"
        " '' AS comment FROM duckdb_tables() UNION ALL"
        " SELECT database_name, schema_name, view_name, 'view', coalesce(comment, '') FROM duckdb_views()) AS things"
        " WHERE database_name = $catalog AND schema_name = $schema AND lower(name) = lower($name)",
        {"catalog": target.catalog, "schema": target.schema, "name": versions.view_name(target)},
    )
    if rows and not rows[0][1].startswith(f"{versions.OURS}: "):
        found = f"{target.schema}.{versions.view_name(target)} is a {rows[0][0]} that reslice did not make"
        raise _refused(contract, "view_foreign", found, f"rename that {rows[0][0]}")
    return bool(rows)


def make_view(session: Session, contract: Contract, target: Target, where: str, *, has_pointers: bool) -> None:
    """Make the view, or bring it up to date; the caller commits.

    Raises Refused[contract_changed] when the versions that are there go by slices of another unit or zone.
    """
    wanted = versions.view(session.dialect, contract, target, where)
    comment = ""
    if has_view(session, contract, target):
        rows = session.execute(
            "SELECT coalesce(comment, '') FROM duckdb_views() WHERE database_name = $catalog AND schema_name = $schema"
            " AND lower(view_name) = lower($name)",
            {"catalog": target.catalog, "schema": target.schema, "name": versions.view_name(target)},
        )
        comment = rows[0][0]
    if comment == wanted.comment:
        return
    if comment and has_pointers and versions.cut_of(comment) != wanted.cut:
        found = f"there are versions already: {versions.cut_of(comment)}"
        raise _refused(contract, "contract_changed", found, "put slice back as it was, or begin with a new table")
    for statement in wanted.statements:
        session.execute(statement)


def _refused(contract: Contract, kind: str, found: str, after: str) -> Refused:
    asked = contract.quote("method", f"method: {contract.method}")
    failure = Failure(kind, asked, (found,), after)
    return Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
