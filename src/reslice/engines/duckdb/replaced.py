"""Where the rows that a run replaced are: in a kept table, or as an earlier version in the table itself."""

from __future__ import annotations

from reslice import ledger
from reslice.contract import Contract, Method
from reslice.engines import versions
from reslice.engines.session import Session
from reslice.engines.sql import kept_columns, quote, text_literal
from reslice.errors import Failure, Refused
from reslice.values import LedgerRun, Target


def replaced_rows(session: Session, contract: Contract, target: Target, undone: LedgerRun) -> str:
    """Return the SELECT of the rows, of all slices, that a run replaced.

    Raises Refused[kept_columns] when the table has other columns now, Refused[kept_gone] when the rows are not there.
    """
    where = ledger.place(target.catalog, contract.ledger.schema)
    kept = ledger.kept_table(where, target)
    if undone.kept_table is not None and undone.kept_table != kept:
        found = f"the columns of {target.resolved}, or their types, are others than when {undone.id} replaced its rows"
        raise _refused(contract, undone, "kept_columns", found, "give the table its columns back")
    if undone.method == Method.APPEND_VERSION:
        if contract.method is not Method.APPEND_VERSION:
            found = f"{undone.id} wrote a version, and the contract's method is now {contract.method}"
            raise _refused(contract, undone, "contract_changed", found, "method: append_version")
        return versions.rows_select(
            session.dialect, contract, target, where, versions.pointers_before(where, undone.id)
        )
    if contract.method is Method.APPEND_VERSION:
        found = f"{undone.id} replaced its rows by {undone.method}, before the table had versions"
        raise _refused(contract, undone, "contract_changed", found, f"method: {undone.method}")
    table = kept.rpartition(".")[2].strip('"')
    rows = session.execute(
        "SELECT 1 FROM duckdb_tables()"
        " WHERE database_name = $catalog AND schema_name = $schema AND table_name = $table",
        {"catalog": target.catalog, "schema": contract.ledger.schema, "table": table},
    )
    if not rows:
        found = f"there is no table {contract.ledger.schema}.{table} any more"
        raise _refused(contract, undone, "kept_gone", found, "")
    columns = ", ".join(quote(name) for name in kept_columns(target))
    return f"SELECT {columns} FROM {kept} WHERE {quote(ledger.KEPT_RUN)} = {text_literal(undone.id)}"


def _refused(contract: Contract, undone: LedgerRun, kind: str, found: str, after: str) -> Refused:
    asked = f"the rows that {undone.id} replaced, put back"
    failure = Failure(kind, asked, (found,), after)
    return Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
