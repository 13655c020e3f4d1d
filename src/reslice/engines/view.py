"""The view of the current versions: whether there is one, whether it is ours, and making it."""

from __future__ import annotations

from dataclasses import replace

from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.session import Catalog, SqlSession
from reslice.engines.sql import quote
from reslice.errors import Failure, Refused
from reslice.tables import Family, Target


def with_versions(session: Catalog, contract: Contract, target: Target) -> Target:
    """Return the target with how its current versions are read, where the ledger is one that knows of versions.

    Raises Refused[view_foreign] when the name of the view is taken by something that is not ours, and
    Refused[versions_unknown] when the table holds versions that its ledger does not know.
    """
    comment = _comment(session, target)
    if comment is not None and not comment.startswith(f"{versions.OURS}: "):
        kind = "view" if comment else "table"
        found = f"{target.schema}.{versions.view_name(target)} is a {kind} that reslice did not make"
        raise _refused(contract, "view_foreign", found, f"rename that {kind}")
    if not can_have_versions(contract, target):
        return target
    where = sql.dotted(target.catalog, contract.ledger.schema)
    known = _known(session, contract, target, where)
    if not known:
        refusal = _unknown_versions(session, contract, target)
        if refusal is not None:  # unless another first run was published between the two looks
            known = _known(session, contract, target, where)
            if not known:
                raise refusal
    if known is None:
        return target
    pointers = versions.current_pointers(where, target)
    return replace(target, current=versions.rows_select(session.dialect, contract, target, where, pointers))


def _known(session: Catalog, contract: Contract, target: Target, where: str) -> bool | None:
    """Whether the ledger knows a version of the table; None when it does not know of versions."""
    if not any(table == "versions" for table, *_ in session.columns_in(target.catalog, contract.ledger.schema)):
        return None
    return bool(session.execute(versions.any_select(where, target)))


def can_have_versions(contract: Contract, target: Target) -> bool:
    """Whether the table has the columns by which versions are told apart; one that has not is refused later on."""
    families = {column.name: column.family for column in target.columns}
    stamp, cut = versions.stamp_column(contract), contract.slice.column
    return families.get(stamp) is Family.TEXT and families.get(cut, Family.OTHER) in CAN_BE_CUT


def _unknown_versions(session: Catalog, contract: Contract, target: Target) -> Refused | None:
    """Return why a table with versions is refused of which the ledger knows none: readers would have all at once."""
    if target.kind != "table" or not {column.name for column in contract.grain} <= {c.name for c in target.columns}:
        return None
    stamp = quote(versions.stamp_column(contract))
    is_id = session.dialect.matches(stamp, versions.RUN_IDS)
    if not session.execute(f"SELECT 1 FROM {sql.target_name(target)} WHERE {is_id} LIMIT 1"):
        return None
    rows = session.execute(versions.several_select(session.dialect, contract, target))
    if not rows:
        return None
    key, stamps = rows[0]
    found = (
        f"({key}) has rows of {stamps} in {target.resolved}, and the ledger in schema {contract.ledger.schema}"
        " knows of no version of this table: it was renamed or copied, or has lost its ledger"
    )
    after = "give the table its name and its ledger back, or replace its rows once by  method: replace_slice"
    return _refused(contract, "versions_unknown", found, after)


CAN_BE_CUT = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ, Family.TEXT, Family.INTEGER})


def _comment(session: Catalog, target: Target) -> str | None:
    """Return the comment of what bears the name of the view; None when nothing does."""
    return session.comment_on(target.catalog, target.schema, versions.view_name(target))


def is_up_to_date(session: Catalog, contract: Contract, target: Target) -> bool | None:
    """Whether the view that others read is the one a contract needs; None when it is not there."""
    comment = _comment(session, target)
    return None if comment is None else comment == versions.view(session.dialect, contract, target).comment


def make_view(session: SqlSession, contract: Contract, target: Target) -> None:
    """Make the view that others read, or bring it up to date; the caller commits.

    Raises Refused[contract_changed] when the versions that are there go by slices of another unit or zone, and
    Refused[view_columns] when the view keeps columns that the table has no more, as it does in PostgreSQL, and
    Refused[method_unsupported] when the database does not take the view: one in DuckDB cannot name its tables where the
    file is called as a schema of it is.
    """
    wanted = versions.view(session.dialect, contract, target)
    comment = _comment(session, target) or ""
    if comment == wanted.comment:
        return
    if comment and target.has_pointers and versions.cut_of(comment) != wanted.cut:
        found = f"there are versions already: {versions.cut_of(comment)}"
        raise _refused(contract, "contract_changed", found, "put slice back as it was, or begin with a new table")
    try:
        for statement in wanted.statements:
            session.execute(statement)
    except session.not_understood as error:
        kind, after = session.way_on_without_view(error, wanted.name, target)
        found = f"{target.schema}.{versions.view_name(target)}: {session.words_of(error)}"
        raise _refused(contract, kind, found, after) from error


def _refused(contract: Contract, kind: str, found: str, after: str) -> Refused:
    asked = contract.quote("method", f"method: {contract.method}")
    failure = Failure(kind, asked, (found,), after)
    return Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
