"""Every way reslice says no, sorted by what the caller should do next.

Each error carries the four parts a user reads, always in the same order: what was *asked*, what was *found*, what was
left *unchanged*, and what to do *next*. A `kind` is a stable name: kinds are added, never renamed or reused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from reslice.values import ControlLine, Run


SAME_AGAIN = "run the same command again"
"""The way on where nothing has to be done first; the command line says which command that is."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that is wrong: the rule asked for, what was found, and the way on.

    `found` holds one fact per entry, counts first, then an example row.
    """

    kind: str
    asked: str
    found: tuple[str, ...]
    next: str


class ResliceError(Exception):
    """A run, plan or verify that ended without doing what was asked.

    `failures` is never empty; the first one names the error. `unchanged` says what was left as it was. `run` is what
    was known when it ended (None when nothing had been staged). `retry` is True only where running the same command
    again may help. `meant` pairs a word that was given with the one that it was probably meant to be.
    """

    word: ClassVar[str]
    exit_code: ClassVar[int]
    retry: ClassVar[bool] = False
    meant: tuple[str, str] | None = None

    def __init__(self, about: str, failures: Iterable[Failure], *, unchanged: str, run: Run | None = None) -> None:
        self.about = about
        self.failures = tuple(failures)
        self.unchanged = unchanged
        self.run = run
        assert self.failures, "an error without a failure says nothing"
        for failure in self.failures:
            assert failure.kind in KINDS, f"unknown error kind {failure.kind}"
        super().__init__(about, self.failures)

    def __str__(self) -> str:
        """Return the kind, what it is about, and what was found, on one line."""
        return f"{self.word}[{self.kind}]: {self.about}: {'; '.join(self.failures[0].found)}"

    @property
    def kind(self) -> str:
        """The stable name of the first failure."""
        return self.failures[0].kind

    @property
    def next(self) -> str:
        """The way on from the first failure that offers one."""
        return next((failure.next for failure in self.failures if failure.next), "")


class Misused(ResliceError):
    """The command, the contract or a SQL file cannot be understood: correct it. Nothing was touched."""

    word = "misused"
    exit_code = 2


class Refused(ResliceError):
    """The rows, the target or the range break the contract: no consent helps. Nothing was written.

    `controls` are the figures that were held against a control, where the rows got that far.
    """

    word = "refused"
    exit_code = 3
    controls: tuple[ControlLine, ...] = ()


class Stopped(ResliceError):
    """A guard wants a person to look, and then to consent. Nothing was written.

    `consent` is the command that publishes exactly what was stopped, for a person who has looked.
    """

    word = "stopped"
    exit_code = 3
    consent: str = ""


class Retryable(ResliceError):
    """Nothing changed, and running the same command again may help."""

    word = "failed"
    exit_code = 4
    retry = True


class OutcomeUnknown(ResliceError):
    """The commit was sent and it is not known, or not true, that the target holds the staged rows: look first."""

    word = "unknown"
    exit_code = 5


class PartlyPublished(ResliceError):
    """A run with one commit per slice ended part-way: the slices it names are published whole, the others untouched.

    `rest` is the range that is left to do, as it is typed.
    """

    word = "partly published"
    exit_code = 6
    retry = True
    rest: str = ""


class Interrupted(ResliceError):
    """It was asked to stop; the transaction was rolled back. Exit 130 (Ctrl-C), 143 (SIGTERM) or 129 (SIGHUP)."""

    word = "interrupted"
    exit_code = 130
    retry = True


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of one stable error kind, as the reference prints it."""

    error: type[ResliceError]
    meaning: str


KINDS: dict[str, Kind] = {
    # cannot be understood (2)
    "usage": Kind(Misused, "the command line names something that does not exist or does not fit together"),
    "contract": Kind(Misused, "reslice.yml has mistakes; each is named with line and column"),
    "range_unreadable": Kind(Misused, "the RANGE does not parse"),
    "connection": Kind(Misused, "the connection cannot be used as written"),
    "source_invalid": Kind(Misused, "the database cannot understand the SQL of a file the contract names"),
    "run_unknown": Kind(Misused, "no run of the ledger matches the RUN that was named"),
    "plan_unreadable": Kind(Misused, "the plan file is not one that reslice wrote"),
    "nothing_to_restore": Kind(Misused, "the run that is named replaced no slice of the range"),
    "nothing_read": Kind(Misused, "nothing of the files that `audit` is given could be read"),
    "nothing_to_draft": Kind(Misused, "the table or file that `init` is given holds nothing to draft a contract from"),
    # a person decides (3)
    "range_reversed": Kind(Refused, "the range ends before it starts"),
    "range_open": Kind(Refused, "the range has no end, or an infinite one"),
    "range_off_unit": Kind(Refused, "a bound of the range is not the boundary of a slice"),
    "target_missing": Kind(Refused, "the target table does not exist"),
    "target_not_table": Kind(Refused, "the target is a view or another thing that rows cannot be replaced in"),
    "target_column": Kind(Refused, "the target has a column the contract does not name, or lacks one it names"),
    "target_referenced": Kind(Refused, "foreign keys of other tables point at the target"),
    "target_key": Kind(Refused, "a unique key of the target leaves no room for a second version of a row"),
    "view_foreign": Kind(Refused, "the name of the view of current versions is taken by something not ours"),
    "view_columns": Kind(Refused, "the view of current versions has a column that the table has under another name"),
    "versions_unknown": Kind(Refused, "the table holds versions of which its ledger knows nothing"),
    "target_rights": Kind(Refused, "the connection may not write what a run has to write"),
    "target_policies": Kind(Refused, "row policies hide rows of the target from the role"),
    "source_rights": Kind(Refused, "the role may not read every row that the SQL of a file reads"),
    "pooler": Kind(Refused, "a proxy between here and the database shares its connections between transactions"),
    "target_type": Kind(Refused, "a column of the target has a type that reslice does not support there"),
    "method_unsupported": Kind(Refused, "the engine cannot publish by the method the contract asks for"),
    "source_column": Kind(Refused, "the source returns a column the contract does not name, or lacks one it names"),
    "source_type": Kind(Refused, "a column of the source has another kind of type than the target's column"),
    "lossy_value": Kind(Refused, "a staged value does not survive the cast to the target's type"),
    "ledger_foreign": Kind(Refused, "the ledger's schema holds tables not ours, or another ledger guards the table"),
    "functions_replaced": Kind(
        Refused, "a function or macro of the database replaces one that fingerprints are made with"
    ),
    "key_repeated": Kind(Refused, "several staged rows share one grain key"),
    "key_null": Kind(Refused, "a grain column is NULL where the contract forbids it"),
    "slice_null": Kind(Refused, "the slice column is NULL in staged rows"),
    "slice_off_unit": Kind(Refused, "a staged slice value is not the first moment of its unit"),
    "outside_range": Kind(Refused, "staged rows lie outside the range that was asked for"),
    "measure_null": Kind(Refused, "a measure is NULL where the contract forbids it"),
    "measure_minimum": Kind(Refused, "a measure is below the minimum of the contract"),
    "control_rows": Kind(Refused, "a control or downstream query does not return one row per slice of the range"),
    "control_differs": Kind(Refused, "the staged rows do not add up to the control"),
    "base_moved": Kind(Refused, "the slice changed in the target after it was compared"),
    "later_run": Kind(Refused, "a later run has already finished on an overlapping range"),
    "approval_stale": Kind(Refused, "the rows are no longer those that were approved"),
    "contract_changed": Kind(Refused, "the contract or its SQL changed since the run or plan that is named"),
    "changed_since_run": Kind(Refused, "a slice is no longer as the run left it: somebody wrote to it since"),
    "kept_columns": Kind(Refused, "the table's columns are not those of the rows that were kept"),
    "kept_gone": Kind(Refused, "the rows that the run replaced are no longer kept"),
    "not_as_staged": Kind(Refused, "read back before the commit, the target did not hold the staged rows"),
    "empty_slice": Kind(Stopped, "a slice that has rows would have none"),
    "total_change": Kind(Stopped, "the total of a measure over the range would move by more than the contract allows"),
    "removed_groups": Kind(Stopped, "groups would be removed and the contract wants a person to see it"),
    "restored": Kind(Stopped, "the run would undo a restore"),
    "sandbox": Kind(Refused, "no copy of the database can be made to run a command in"),
    "unconfirmed": Kind(Stopped, "a restore, or a proof in place, wants a person to look first, and to say yes"),
    "closed_through": Kind(Stopped, "the range holds slices that are still filling"),
    "max_slices": Kind(Stopped, "the range has more slices than the contract allows in one run"),
    # try again (4)
    "database_unavailable": Kind(Retryable, "the database cannot be reached or opened"),
    "database_busy": Kind(Retryable, "another process has the file open (DuckDB), or a lock was not free in time"),
    "conflict": Kind(Retryable, "another transaction changed the rows, or kept its lock; everything was rolled back"),
    "source_failed": Kind(Retryable, "the database failed while it evaluated the SQL of a file"),
    "publish_failed": Kind(
        Retryable, "the database failed while the slice was being replaced; everything was rolled back"
    ),
    "write_aborted": Kind(
        Retryable, "what was written under a writer_lock was not committed; everything was rolled back"
    ),
    "command_failed": Kind(Retryable, "a command that was to be proven failed, or took too long"),
    # look first (5)
    "outcome_unknown": Kind(OutcomeUnknown, "the commit was sent and no answer came back"),
    "slipped_in": Kind(
        OutcomeUnknown, "committed, and the target no longer holds the staged rows: another writer got in"
    ),
    "not_read_back": Kind(OutcomeUnknown, "committed, and the committed slices could not be read again"),
    "not_put_back": Kind(
        OutcomeUnknown, "the rows from before a proof in place could not be put back; a copy of them is kept"
    ),
    "internal": Kind(OutcomeUnknown, "a bug in reslice: what became of the target is not known until it is looked at"),
    # part-way (6), interrupted (129, 130, 143)
    "partly_published": Kind(PartlyPublished, "some slices are published, each whole; the rest are as they were"),
    "interrupted": Kind(Interrupted, "the run was asked to stop and rolled back"),
}
