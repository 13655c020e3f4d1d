"""What an audit says: values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sort(StrEnum):
    """How sure a rule is: an unsafe write, something worth knowing, or something that cannot be decided by reading."""

    FINDING = "finding"
    NOTE = "note"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in a file. Lines and columns count from 1, columns in characters; the end is included."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule says of one place.

    `title` is the rule's, `detail` says what was found here, `help` what to do about it. `lines` are those of the file
    from the first line of the place to its last, without their ends, for the excerpt. `table` is the table that is
    written, where it is about one. `begins` is the line on which the statement, model or call begins that it is about,
    0 where it is the place's. `reason` is why it is right all the same, where it was suppressed.
    """

    place: Place
    code: str
    title: str
    detail: str
    help: str
    sort: Sort
    lines: tuple[str, ...] = ()
    table: str = ""
    begins: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Unparsed:
    """A file, or a part of one, that could not be read: it is never counted as safe."""

    path: str
    line: int
    column: int
    why: str


@dataclass(frozen=True, slots=True)
class Audited:
    """What was found in the files of a path; each list is sorted by place.

    `findings` alone decide whether the answer is no. `suppressed` were found, and somebody said with a reason that they
    are right. `guessed` counts the files whose dialect nobody named, by the dialect they were read in. `is_blind` says
    that there was something to read, and that nothing of it could be read: then no finding says nothing.
    """

    files: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    unknown: tuple[Finding, ...]
    unparsed: tuple[Unparsed, ...]
    suppressed: tuple[Finding, ...] = ()
    guessed: tuple[tuple[str, int], ...] = ()
    is_blind: bool = False
