"""What every publish does inside its one transaction: compare again, read back, record.

Nothing here begins or ends a transaction: whoever calls rolls all of it back when an error passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reslice import ledger
from reslice.commands import command, restore_command
from reslice.engines import sql
from reslice.engines.publication import Entry, Publication
from reslice.engines.session import Session
from reslice.errors import SAME_AGAIN, Failure, Refused, Retryable
from reslice.findings import counted
from reslice.values import Fingerprint, Staged, State


def as_it_was_compared(engine: Session, publication: Publication, staged_order: int) -> Publication:
    """Refuse when a later run has finished, or the slices are no longer what was compared.

    Return the publish with what the turn has shown: whether slices have versions.
    """
    refuse_later_run(engine, publication, staged_order)
    if not engine.execute(publication.holds(engine.dialect, publication.names.base, publication.compared))[0][0]:
        raise base_moved(engine, publication)
    return with_points(engine, publication)


def refuse_later_run(engine: Session, publication: Publication, staged_order: int) -> None:
    """Refuse when a run that staged later has already finished."""
    staged, hull = publication.staged, publication.compared.hull
    later = ledger.later_run(engine, publication.where, staged.target.resolved, staged_order, hull)
    if later is not None:
        found = f"{later} staged its rows after this run did, and has finished"
        raise refused(publication, "later_run", "the newest source rows stay", found)


def with_points(engine: Session, publication: Publication) -> Publication:
    """Return the publish with whether pointers at versions have to move."""
    return replace(publication, points=engine.execute(f"SELECT {publication.pointing(engine.dialect)}")[0][0])


def base_moved(engine: Session, publication: Publication) -> Refused:
    """Return the refusal of a publish whose slices are not what was compared."""
    before = publication.base.rows
    live = int(engine.execute(publication.fingerprint(engine.dialect, publication.compared))[0][0])
    found = f"{publication.compared.text} held {counted(before, 'row')} when it was compared and now {live}"
    if live == before:
        found = f"{publication.compared.text} holds {counted(live, 'row')} as when it was compared, with other values"
    return refused(publication, "base_moved", "the slice is what it was compared with", found)


def equal_moved(staged: Staged, moved: Sequence[str]) -> Refused:
    """Return the refusal to say of slices that they are as their source, which were so when they were compared."""
    contract = staged.contract
    more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
    one = len(moved) == 1
    found = f"{', '.join(moved[:5])}{more} {'was' if one else 'were'} equal to the source when it was compared, and"
    found += f" {'is' if one else 'are'} not any more: a run that had staged earlier, or another writer, came between"
    failure = Failure(
        "base_moved", "what is not written is still equal", (found,), command("run", contract.name, staged.scope)
    )
    unchanged = f"{contract.table} is as the other writer left it"
    return Refused(f"{contract.name} for {staged.scope.text}", [failure], unchanged=unchanged)


def refused(publication: Publication, kind: str, asked: str, found: str) -> Refused:
    """Return the refusal of a publish that found the table other than it was to be."""
    contract, staged = publication.staged.contract, publication.staged
    after = command("plan", contract.name, staged.scope)
    if staged.restores:
        after = restore_command(staged.restores, staged.scope)
    about = f"{contract.name} for {staged.scope.text}"
    unchanged = f"{contract.table} is as the other writer left it; nothing was written"
    return Refused(about, [Failure(kind, asked, (found,), after)], unchanged=unchanged)


def referenced(publication: Publication, row: str) -> Refused:
    """Return the refusal of a publish that would take a row away which rows of other tables point at."""
    contract, target = publication.staged.contract, publication.staged.target
    found = f"rows of {', '.join(target.referenced_by) or 'another table'} point at ({row}), which would be removed"
    asked = f"no row is removed from {contract.table} while another points at it"
    after = "delete the rows that point at it, or keep its group in the source"
    about = f"{contract.name} for {publication.staged.scope.text}"
    unchanged = f"{contract.table} is as it was; everything was rolled back"
    return Refused(about, [Failure("target_referenced", asked, (found,), after)], unchanged=unchanged)


def refuse_when_not_as_staged(engine: Session, publication: Publication) -> None:
    """Read the slices back inside the transaction; what is not exactly the staged rows is never committed."""
    rows, total = engine.execute(publication.written_back(engine.dialect))[0]
    if Fingerprint(int(rows), int(total)) != publication.after:
        raise not_as_staged(engine, publication)


def not_as_staged(engine: Session, publication: Publication) -> Refused:
    """Return the refusal of a publish that reads back other rows than were staged."""
    rows, total = engine.execute(publication.fingerprint(engine.dialect, publication.written))[0]
    written, staged = (
        engine.execute(publication.content(engine.dialect, table))[0][0]
        for table in (sql.relation(publication.staged.target), publication.names.staged)
    )
    live = Fingerprint(int(rows), int(total))
    found = f"read back {written} ({live}) against {staged} staged ({publication.after})"
    return refused(publication, "not_as_staged", "the target holds the staged rows", found)


def generation_of(publication: Publication, generations: Sequence[Sequence[Any]]) -> int:
    """Return the new generation of the fence; Retryable when it is gone: the next run makes it anew."""
    if len(generations) != 1:
        table = publication.staged.target.resolved
        words = f"the fence of {table} is gone from the ledger: somebody has deleted it; the next run makes it anew"
        raise not_published(publication, "conflict", words)
    return int(generations[0][0])


def write_ledger(engine: Session, publication: Publication, entry: Entry, order: int, milliseconds: int | None) -> None:
    """Write the slices, groups and, for a run of one commit, the end of the run, in the data's own transaction."""
    where, run, run_id = publication.where, entry.run, entry.opened.id
    ledger.insert_slices(
        engine, where, run_id, publication.slices, ["published"] * len(publication.slices), is_published=True
    )
    ledger.insert_groups(engine, where, run_id, entry.groups)
    if run is None:
        return
    ledger.insert_rest(engine, where, run_id, run, [each.label for each in publication.slices])
    more = {
        "staged_order": entry.staged_order,
        "publish_order": order,
        "lock_milliseconds": milliseconds,
        "kept_table": publication.kept,
    }
    state = State.RESTORED if publication.staged.restores else State.PUBLISHED
    if ledger.close(engine, where, run_id, replace(run, id=run_id), state, more) != 1:
        words = (
            f"{run_id} is no longer open in the ledger: somebody has deleted it there, or has said that it has ended"
        )
        raise not_published(publication, "conflict", words)


def not_published(publication: Publication, kind: str, text: str) -> Retryable:
    """Return the error of a publish that was rolled back, and may go through when it is run again."""
    contract = publication.staged.contract
    about = f"{contract.name} for {publication.staged.scope.text}"
    failure = Failure(kind, "the slice replaced in one commit", (text,), SAME_AGAIN)
    return Retryable(about, [failure], unchanged=f"{contract.table} is as it was; everything was rolled back")
