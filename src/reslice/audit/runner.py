"""An audit of paths: which files are read, what each says, and the answer in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reslice.audit.finding import Audited, Finding, Sort, Unparsed
from reslice.audit.known import Table, declared
from reslice.audit.sql import judged, read_sql
from reslice.audit.text import Text


def audit(paths: Sequence[Path], dialect: str | None = None) -> Audited:
    """Return what the files of paths say of the writes in them; folders are read with all that is below them."""
    files = sorted({file for path in paths for file in _files(path)})
    known: dict[str, Table] = {}
    findings: list[Finding] = []
    unparsed: list[Unparsed] = []
    for file in files:
        text = Text(str(file), file.read_text(encoding="utf-8-sig"))
        script, unread = read_sql(text, dialect, {})
        known |= declared([each.node for each in script.statements], script.dialect)
    for file in files:
        text = Text(str(file), file.read_text(encoding="utf-8-sig"))
        script, unread = read_sql(text, dialect, known)
        findings += judged(script)
        for at, why in unread:
            place = text.place(at, at)
            unparsed.append(Unparsed(place.path, place.line, place.column, why))
    findings.sort(key=lambda each: (each.place, each.code))

    def of(sort: Sort) -> tuple[Finding, ...]:
        return tuple(each for each in findings if each.sort is sort)

    return Audited(tuple(map(str, files)), of(Sort.FINDING), of(Sort.NOTE), of(Sort.UNKNOWN), tuple(unparsed))


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from path.rglob("*.sql")
    else:
        yield path
