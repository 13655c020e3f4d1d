"""Where the rows that a run replaced are: in a kept table, or as an earlier version in the table itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reslice import ledger
from reslice.contract import Contract, Method
from reslice.engines import sql, versions
from reslice.engines.session import Catalog
from reslice.engines.sql import kept_columns, quote, text_literal
from reslice.errors import Failure, Refused
from reslice.recorded import LedgerRun
from reslice.tables import Target

KEPT_NAME = re.compile("kept_[0-9a-f]{12}")


def replaced_rows(session: Catalog, contract: Contract, target: Target, undone: LedgerRun) -> str:
    """Return the SELECT of the rows, of all slices, that a run replaced; of none where they are not kept any more.

    Raises Refused[contract_changed] when the contract means another table or method now, Refused[kept_columns] when the
    table has other columns.
    """
    if not target.is_called(undone.table):
        found = f"{undone.id} wrote {undone.table}, and {contract.table} is now {target.resolved}"
        raise _refused(contract, undone, "contract_changed", found)
    where = ledger.place(target.catalog, contract.ledger.schema)
    kept = _kept_then(session, contract, target, undone, where)
    if undone.method == Method.APPEND_VERSION:
        if contract.method is not Method.APPEND_VERSION:
            found = f"{undone.id} wrote a version, and the contract's method is now {contract.method}"
            raise _refused(contract, undone, "contract_changed", found, after="method: append_version")
        return versions.rows_select(
            session.dialect, contract, target, where, versions.pointers_before(where, undone.id)
        )
    if contract.method is Method.APPEND_VERSION:
        found = f"{undone.id} replaced its rows by {undone.method}, before the table had versions"
        raise _refused(contract, undone, "contract_changed", found, after=f"method: {undone.method}")
    columns = ", ".join(quote(name) for name in kept_columns(target))
    if not _columns_of(session, contract, target, kept):
        return f"SELECT {columns} FROM {sql.target_name(target)} WHERE false"
    return f"SELECT {columns} FROM {kept} WHERE {quote(ledger.KEPT_RUN)} = {text_literal(undone.id)}"


def _kept_then(session: Catalog, contract: Contract, target: Target, undone: LedgerRun, where: str) -> str:
    """Return the table that keeps the rows which the run replaced; another one where the database was renamed.

    Refuse when the table's columns are others than they were then, and name those that differ.
    """
    kept = ledger.kept_table(where, target)
    then = f"{where}.{quote(_name(undone.kept_table))}" if undone.kept_table else None
    then = then or _kept_by(session, contract, target, undone, where) or kept
    gone = sorted(set(contract.columns) - {column.name for column in target.columns})
    columns = _columns_of(session, contract, target, then)
    if not gone and (then == kept or list(columns.items()) == list(_kept_now(target).items())):
        return then
    found = [f"the columns of {target.resolved} are not those that it had when {undone.id} replaced its rows"]
    found += _differences(columns, target)
    if then == kept:
        found.append(f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone")
    else:
        found.append(f"the rows are in {contract.ledger.schema}.{_name(then)}, under {undone.id}")
    raise _refused(contract, undone, "kept_columns", *found, after="give the table its columns back")


def _kept_now(target: Target) -> dict[str, str]:
    return {name: target.column(name).type for name in kept_columns(target)}


def _differences(then: dict[str, str], target: Target) -> Iterator[str]:
    """Yield how columns differ from those of a kept table, one by one; nothing where that table is gone."""
    now = _kept_now(target)
    if not then:
        return
    yield from (f"{name} {type_text} is gone" for name, type_text in then.items() if name not in now)
    yield from (f"{name} {type_text} is new" for name, type_text in now.items() if name not in then)
    for name, type_text in now.items():
        if then.get(name, type_text) != type_text:
            yield f"{name} was {then[name]} and is {type_text}"
    if then == now and list(then) != list(now):
        yield f"they stood in another order: {', '.join(then)}"


def _kept_by(session: Catalog, contract: Contract, target: Target, undone: LedgerRun, where: str) -> str | None:
    """Return the kept table that holds rows of a run which ended before it could say which one it was."""
    for name in kept_tables(session, target.catalog, contract.ledger.schema):
        kept = f"{where}.{quote(name)}"
        mine = f"SELECT 1 FROM {kept} WHERE {quote(ledger.KEPT_RUN)} = $run LIMIT 1"
        if session.execute(mine, {"run": undone.id}):
            return kept
    return None


def _columns_of(session: Catalog, contract: Contract, target: Target, kept: str) -> dict[str, str]:
    """Return the columns of a kept table that are the target's, with their types; none when there is no such table."""
    found = session.columns_in(target.catalog, contract.ledger.schema)
    return {name: type_text for table, name, type_text in found if table == _name(kept) and name != ledger.KEPT_RUN}


def kept_tables(session: Catalog, catalog: str, schema: str) -> list[str]:
    """Return the tables that keep replaced rows, of every set of columns; never one that only has such a name."""
    first: dict[str, str] = {}
    for table, name, _ in session.columns_in(catalog, schema):
        first.setdefault(table, name)
    return sorted(table for table, name in first.items() if KEPT_NAME.fullmatch(table) and name == ledger.KEPT_RUN)


def _name(kept: str) -> str:
    return kept.rpartition(".")[2].strip('"')


def _refused(contract: Contract, undone: LedgerRun, kind: str, *found: str, after: str = "") -> Refused:
    asked = f"the rows that {undone.id} replaced, put back"
    failure = Failure(kind, asked, found, after or f"reslice show {undone.id} --diff")
    return Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
