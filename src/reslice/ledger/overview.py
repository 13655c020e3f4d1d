"""What the ledger says of targets as a whole: their newest runs, a page of them, and the last word on each slice.

The questions stay in the database: what comes back is what is shown, however many runs there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reslice.engines.session import Session
from reslice.ledger.reading import select_runs
from reslice.ledger.texts import instant, load, utc
from reslice.recorded import LedgerRun


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs of a target are listed; what is empty leaves nothing out.

    `first` and `last` are the bounds of a range as the ledger keeps them: runs over some of it are listed. `before` is
    the number of a run: those that came earlier are.
    """

    target: str
    state: str = ""
    kind: str = ""
    first: str = ""
    last: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class SliceWord:
    """The last word of the ledger on one slice: which run said it, and when that was (UTC).

    `state` is what the run found or did: published, unchanged, empty, or open. `has_base` and `has_staged` say whether
    target and source held rows of it then.
    """

    slice: str
    run: str
    number: int
    kind: str
    state: str
    has_base: bool
    has_staged: bool
    at: datetime


def page_of_runs(session: Session, where: str, absent: Collection[str], wanted: Wanted, limit: int) -> list[LedgerRun]:
    """Return the newest runs that are wanted, newest first, without the statements they executed."""
    conditions = {
        "target = $target": ("target", wanted.target),
        "state = $state": ("state", wanted.state),
        "kind = $kind": ("kind", wanted.kind),
        "range_first <= $last": ("last", wanted.last),
        "range_last >= $first": ("first", wanted.first),
        "number < $before": ("before", wanted.before),
    }
    given = {text: value for text, value in conditions.items() if value[1] not in ("", None)}
    listed = f"SELECT id FROM {where}.runs WHERE {' AND '.join(given)} ORDER BY number DESC LIMIT $limit"
    rest = f"WHERE id IN ({listed}) ORDER BY number DESC"  # the other columns are read of these alone
    return select_runs(session, where, rest, dict(given.values()) | {"limit": limit}, unread={*absent, "sql"})


def newest(session: Session, where: str, absent: Collection[str], targets: Sequence[str]) -> list[LedgerRun]:
    """Return the newest run of each target that has any."""
    ours = "target = ANY(CAST($targets AS VARCHAR[]))"
    # One look at the ledger, whatever indexes it has: the id goes along with the number, both of them text.
    last = "substr(max(lpad(CAST(number AS VARCHAR), 19, '0') || id), 20)"
    rest = f"WHERE id IN (SELECT {last} FROM {where}.runs WHERE {ours} GROUP BY target)"
    return select_runs(session, where, rest, {"targets": list(targets)}, unread={*absent, "sql"})


@dataclass(frozen=True, slots=True)
class Unreconciled:
    """A run that was refused because figures of the control differ in these slices."""

    run: str
    number: int
    at: datetime
    slices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """What is new in a ledger: last words on slices, refusals over a control, and up to which run all had ended."""

    through: int
    words: tuple[SliceWord, ...] = ()
    unreconciled: tuple[Unreconciled, ...] = ()


# A published slice is there while its run still works; the other slices of a run come with its end. So runs are heard
# again from the first on that had not ended.
_THROUGH = """
SELECT coalesce(min(CASE WHEN state = 'requested' THEN number END) - 1, max(number)), max(number)
FROM {where}.runs WHERE target = $target AND number > $since
"""
_WORDS = """
SELECT slice, run_id, number, kind, state, fingerprint_base, fingerprint_staged, {instant} FROM (
    SELECT
        s.slice, s.run_id, r.number, r.kind, s.state, s.fingerprint_base, s.fingerprint_staged,
        coalesce(s.published_at, r.requested_at) AS said,
        row_number() OVER (
            PARTITION BY s.slice ORDER BY coalesce(s.published_at, r.requested_at) DESC, r.number DESC
        ) AS place
    FROM {where}.runs AS r JOIN {where}.run_slices AS s ON s.run_id = r.id
    WHERE r.target = $target AND r.number > $since AND r.unit = $unit AND r.kind <> 'prune'
        AND NOT (r.kind = 'restore' AND s.state = 'open')
) AS words WHERE place = 1
"""


def hear(session: Session, where: str, target: str, unit: str, since: int) -> Heard:
    """Return what runs after number `since` say of slices of that unit."""
    about: dict[str, Any] = {"target": target, "since": since}
    through, newest_number = session.execute(_THROUGH.format(where=where), about)[0]
    if newest_number is None:
        return Heard(since)
    rows = session.execute(_WORDS.format(where=where, instant=utc("said")), about | {"unit": unit})
    return Heard(int(through), tuple(map(_word, rows)), _unreconciled(session, where, about))


def mark(session: Session, where: str, run_id: str) -> str | None:
    """Return when a run was asked for, by which its ledger is known again; None when the ledger has no such run."""
    rows = session.execute(f"SELECT {utc('requested_at')} FROM {where}.runs WHERE id = $id", {"id": run_id})
    return rows[0][0] if rows else None


def _word(row: Sequence[Any]) -> SliceWord:
    slice_text, run, number, kind, state, base, staged, said = row
    at = instant(said)
    assert at is not None, "every word was said at some time"
    return SliceWord(slice_text, run, number, kind, state, _has_rows(base), _has_rows(staged), at)


def _has_rows(fingerprint: str | None) -> bool:
    return fingerprint is not None and not fingerprint.startswith("0:")


UNRECONCILED_READ = 50
"""Of refusals over a control so many are read, the newest; slices that only older ones name are not told."""


def _unreconciled(session: Session, where: str, about: Mapping[str, Any]) -> tuple[Unreconciled, ...]:
    rows = session.execute(
        f"SELECT id, number, {utc('requested_at')}, controls FROM {where}.runs WHERE target = $target"
        " AND number > $since AND state = 'refused' AND position('slices_differing' IN controls) > 0"
        " ORDER BY number DESC LIMIT $limit",
        {**about, "limit": UNRECONCILED_READ},
    )
    found = []
    for run, number, at_text, controls in rows:
        at = instant(at_text)
        assert at is not None, "every run has the time of its request"
        labels = dict.fromkeys(label for line in load(controls) for label in line["slices_differing"])
        if labels:
            found.append(Unreconciled(run, number, at, tuple(labels)))
    return tuple(found)
