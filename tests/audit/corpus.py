"""The labelled cases: small files with their right answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from reslice.audit.finding import Audited

CASES = Path(__file__).parent / "cases"
_HEAD = re.compile(r"^(?:--|#) (dialect|expect): (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"(?:(?P<sort>note|unknown) )?(?P<code>RS\d{3}|unparsed) at (?:(?P<file>[^:\s]+):)?(?P<line>\d+)")


@dataclass(frozen=True)
class Case:
    """One case: its path, the dialect it is in (None: it is not said), and what is right, as comparable entries."""

    path: Path
    dialect: str | None
    expected: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.path.relative_to(CASES))


def cases() -> list[Case]:
    files = [each for each in sorted(CASES.rglob("*")) if each.suffix in (".sql", ".hql", ".py") and not _in_dbt(each)]
    folders = sorted(each.parent for each in CASES.glob("dbt/*/expect.txt"))
    return [*map(_case, files), *map(_folder_case, folders)]


def _in_dbt(path: Path) -> bool:
    return path.relative_to(CASES).parts[0] == "dbt"


def _case(path: Path) -> Case:
    head = dict(_HEAD.findall(path.read_text(encoding="utf-8", errors="replace")))
    assert "expect" in head, f"{path} does not say what is right"
    return Case(path, head.get("dialect"), _entries(head["expect"], path.name))


def _folder_case(folder: Path) -> Case:
    return Case(folder, None, _entries((folder / "expect.txt").read_text(), ""))


def _entries(text: str, own: str) -> tuple[str, ...]:
    if text.strip() == "nothing":
        return ()
    found = []
    for each in re.split(r",|\n", text.strip()):
        entry = _ENTRY.fullmatch(each.strip())
        assert entry is not None, f"not understood: {each!r}"
        sort = entry["sort"] or ("unparsed" if entry["code"] == "unparsed" else "finding")
        found.append(f"{sort} {entry['code']} {entry['file'] or own}:{entry['line']}")
    return tuple(sorted(found))


def answered(audited: Audited, case: Case) -> tuple[str, ...]:
    """Return what an audit says, in the form of the expected entries."""

    def file(path: str) -> str:
        return Path(path).name if case.path.is_file() else Path(path).relative_to(case.path).as_posix()

    said = [
        f"{each.sort} {each.code} {file(each.place.path)}:{each.place.line}"
        for each in (*audited.findings, *audited.notes, *audited.unknown)
    ]
    said += [f"unparsed unparsed {file(each.path)}:{each.line}" for each in audited.unparsed]
    return tuple(sorted(said))
