"""An audit of paths: which files are read, what each says, and the answer in order.

Tables that any file declares are known in all of them: files that declare some are read first. Then every file is
judged by itself, many at a time where there are many. The answer does not depend on how the work was divided.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path

from reslice.audit.files import Files, Kind, Source, content_of, files_of
from reslice.audit.finding import Audited, Finding, Sort, Unparsed
from reslice.audit.known import Known, Table
from reslice.audit.reader import READERS, reader_of
from reslice.audit.sql import DECLARATION, tables_in
from reslice.audit.suppress import applied
from reslice.audit.workers import SEVERAL, Died, Workers, processors

Progress = Callable[[int, int], None]
"""Is told how many sources are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one source says, with what is suppressed in it set apart."""

    files: tuple[str, ...]
    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    unparsed: tuple[Unparsed, ...]
    guessed: str = ""
    was_read: bool = True


def audit(paths: Sequence[Path], dialect: str | None = None, on_progress: Progress | None = None) -> Audited:
    """Return what the files of paths say of the writes in them; folders are read with all that is below them.

    Files are named as the paths lead to them. Paths that lead to nothing are left out: `files_of` tells them.
    """
    return audit_files(files_of(paths, READERS), dialect, on_progress)


def audit_files(files: Files, dialect: str | None = None, on_progress: Progress | None = None) -> Audited:
    """Return what files say of the writes in them."""
    sources = [part for source in files.sources for part in _parts(source)]
    are_large = any(source.part[1] > 1 for source in sources)
    declaring = [source for source in sources if source.kind is Kind.SQL and _declares(source.path)]
    total, done = len(declaring) + len(sources), 0
    known: dict[str, Table] = {}
    found: list[Judged] = []
    with Workers() as workers:
        for tables in workers.map(partial(_tables, dialect), declaring):
            known |= {} if isinstance(tables, Died) else tables
            done += 1
            _tell(on_progress, done, total)
        judge = partial(_judged, dialect, pickle.dumps(known))
        for source, judged in zip(sources, workers.map(judge, sources, are_large=are_large), strict=True):
            found.append(_lost(source, judged) if isinstance(judged, Died) else judged)
            done += 1
            _tell(on_progress, done, total)
    return _answer(files, found)


def _parts(source: Source) -> list[Source]:
    """Return a source as it is; a large dbt project as one for each processor."""
    count = processors()
    if source.kind is not Kind.DBT or count < 2:
        return [source]
    models = islice(source.path.rglob("*.sql"), 2 * SEVERAL)
    if sum(1 for _ in models) < 2 * SEVERAL:
        return [source]
    return [replace(source, part=(number, count)) for number in range(count)]


def _tell(on_progress: Progress | None, done: int, total: int) -> None:
    if on_progress is not None:
        on_progress(done, total)


def _lost(source: Source, died: Died) -> Judged:
    """Return the answer for a source over which the process that read it ended."""
    how = f"signal {-died.how}" if died.how < 0 else f"exit {died.how}"
    why = f"the process that read it ended ({how}), for lack of memory perhaps"
    return Judged((str(source.path),), (), (), (Unparsed(str(source.path), 1, 1, why),), was_read=False)


def _answer(files: Files, found: Sequence[Judged]) -> Audited:
    kept = sorted((each for judged in found for each in judged.kept), key=_place)
    unparsed = sorted({*files.unparsed, *(each for judged in found for each in judged.unparsed)})
    names = {name for judged in found for name in judged.files} | {each.path for each in unparsed}

    def of(sort: Sort) -> tuple[Finding, ...]:
        return tuple(each for each in kept if each.sort is sort)

    return Audited(
        tuple(sorted(names)),
        of(Sort.FINDING),
        of(Sort.NOTE),
        of(Sort.UNKNOWN),
        tuple(unparsed),
        tuple(sorted((each for judged in found for each in judged.suppressed), key=_place)),
        tuple(sorted(Counter(judged.guessed for judged in found if judged.guessed).items())),
        is_blind=bool(unparsed) and not any(judged.was_read for judged in found),
    )


def _place(finding: Finding) -> tuple[object, ...]:
    return (finding.place, finding.code, finding.detail)


def _declares(path: Path) -> bool:
    """Whether a file may declare tables, by a look at its text alone."""
    content = content_of(path)
    return isinstance(content, bytes) and DECLARATION.search(content.decode("utf-8", "replace")) is not None


def _tables(dialect: str | None, source: Source) -> dict[str, Table]:
    return tables_in(source, dialect)


def _judged(dialect: str | None, known: bytes, source: Source) -> Judged:
    """Return what a source says. What is suppressed is set apart here, where the text of its files is at hand."""
    answer = reader_of(source.kind)(source, dialect, _known(known))
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    unread = {each.path for each in answer.unparsed}
    by_path: dict[str, list[Finding]] = {}
    for each in dict.fromkeys(answer.findings):  # two inserts share the delete before them
        by_path.setdefault(each.place.path, []).append(each)
    for text in answer.texts:
        holding, quiet = applied(text, by_path.pop(text.path, []), is_read=text.path not in unread)
        kept += holding
        suppressed += quiet
    for rest in by_path.values():
        kept += rest
    files = tuple({text.path for text in answer.texts} | unread)
    return Judged(files, tuple(kept), tuple(suppressed), answer.unparsed, answer.guessed, answer.was_read)


@lru_cache(maxsize=1)
def _known(pickled: bytes) -> Known:
    found: Known = pickle.loads(pickled)
    return found
