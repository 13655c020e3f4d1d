"""What in a database keeps reslice from trusting it: functions that are not what they say, tables that are not ours."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from reslice import ledger
from reslice.contract import Contract, Method
from reslice.engines import sql
from reslice.engines.session import Catalog, Ledgers
from reslice.errors import Failure, Refused
from reslice.tables import Target


def refuse_replaced_functions(contract: Contract, found: tuple[Any, ...]) -> None:
    """Refuse when fingerprints are not what they are by definition: something else bears a built-in function's name."""
    if (int(found[0]), int(found[1])) == sql.KNOWN_ANSWER:
        return
    asked = "the functions that fingerprints are made with are the database's own"
    words = "a function or macro of the database replaces one of them (md5, concat_ws, left, replace, count or sum)"
    failure = Failure("functions_replaced", asked, (words,), "drop it, or give it another name")
    raise Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")


def refuse_hidden_rows(contract: Contract, target: Target, row_id: str) -> None:
    """Refuse methods that write to single rows where a column of the table bears the name by which rows are known."""
    hiding = [column.name for column in target.columns if column.name.lower() == row_id]
    if not hiding or contract.method not in (Method.MERGE, Method.APPEND_VERSION):
        return
    found = f"{target.resolved} has a column {hiding[0]}, which hides the name by which rows are told apart"
    asked = contract.quote("method", f"method: {contract.method}")
    failure = Failure("method_unsupported", asked, (found,), "rename the column, or use  method: replace_slice")
    raise Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")


def refuse_foreign_tables(contract: Contract, tables: tuple[str, ...]) -> None:
    """Refuse to make a ledger of tables that a user has made."""
    if tables:
        schema = contract.ledger.schema
        asked = contract.quote("ledger.schema", f"ledger: {{schema: {schema}}}")
        found = f"the schema {schema} holds {', '.join(tables)}, which reslice did not make; left untouched"
        failure = Failure("ledger_foreign", asked, (found,), "choose another schema:  ledger: {schema: reslice_ledger}")
        raise Refused(contract.name, [failure], unchanged="nothing was written")


def lacking_rights(contract: Contract, lacking: Sequence[str], role: str) -> tuple[Failure, ...]:
    """Return the failure of a role that may not write down what a run does; none where nothing is lacking."""
    asked = contract.quote("ledger.schema", f"ledger: {{schema: {contract.ledger.schema}}}")
    return (Failure("target_rights", asked, tuple(lacking), next_rights(role)),) if lacking else ()


def refuse_lacking_rights(contract: Contract, lacking: Sequence[str], role: str) -> None:
    """Refuse where a run may not write down what it does: nothing of it is begun."""
    if failures := lacking_rights(contract, lacking, role):
        raise Refused(contract.name, failures, unchanged=f"{contract.table} is as it was; nothing was written")


def refuse_unreadable_ledger(about: str, schema: str, found: Sequence[str], role: str) -> None:
    """Refuse to tell of runs where something was found that keeps a role from reading them."""
    if found:
        failure = Failure("target_rights", f"the runs in the ledger, schema {schema}", tuple(found), next_rights(role))
        raise Refused(about, [failure], unchanged="nothing was written")


def next_rights(role: str) -> str:
    """Return what gives a role the rights it lacks: whoever runs it, the script is for that role."""
    named = f" --role {shlex.quote(role)}" if role else ""
    return f"have its owner run what  reslice init --ledger --sql{named}  prints"


def refuse_second_ledger(session: Catalog, contract: Contract, target: Target) -> None:
    """Refuse a table that another ledger guards: two fences would let two publishes through at once."""
    for schema in other_ledgers(session, target.catalog, contract.ledger.schema, target.resolved):
        asked = contract.quote("ledger.schema", f"ledger: {{schema: {contract.ledger.schema}}}")
        found = f"the ledger in schema {schema} already guards {target.resolved}; a table has one ledger"
        failure = Failure("ledger_foreign", asked, (found,), f"write  ledger: {{schema: {schema}}}")
        raise Refused(contract.name, [failure], unchanged="nothing was written")


def other_ledgers(session: Ledgers, catalog: str, schema: str, table: str) -> list[str]:
    """Return the schemas of ledgers other than the one in `schema` that guard a table."""
    return [
        found
        for place, found in session.ledgers()
        if place == catalog
        and found != schema
        and session.execute(
            f"SELECT 1 FROM {ledger.place(catalog, found)}.fences WHERE table_name = $name", {"name": table}
        )
    ]
