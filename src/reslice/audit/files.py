"""Which files an audit reads: those that are named, and those below the folders that are named.

A file is read once, however often it is named. Folders that are hidden, or that tools fill (`node_modules`, what dbt
writes), are left out, and so are links to folders. What is there and cannot be read is told: it is never passed over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from glob import glob, has_magic
from pathlib import Path

from reslice.audit.finding import Unparsed
from reslice.audit.text import Text

SIZE_MAX = 1 << 20
"""The largest file that is read, in bytes: 1 MiB."""

PROJECT = "dbt_project.yml"
"""The file that makes a folder a dbt project."""

_LEFT_OUT = frozenset({"node_modules", "site-packages", "__pycache__", "dbt_packages", "dbt_modules"})
_MADE_BY_DBT = frozenset({"target", "logs"})
_READ_BY_DBT = ("models", "macros", "snapshots", "tests", "analyses", "analysis", "seeds", "data")
_ENVIRONMENT = "pyvenv.cfg"


class Kind(StrEnum):
    """What a source is, which decides who reads it."""

    SQL = "sql"
    PYTHON = "python"
    DBT = "dbt"


_KINDS = {".sql": Kind.SQL, ".hql": Kind.SQL, ".py": Kind.PYTHON}


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One thing to read: a file, or the folder of a dbt project.

    `path` leads to it as it was named. Of a project, `only` are the files and folders in it that were asked for; it is
    empty where all of it was. What lies in a project beside the folders that dbt reads are sources of their own. A
    large project is several sources: `part` says which of how many it is.
    """

    path: Path
    kind: Kind
    only: tuple[Path, ...] = ()
    part: tuple[int, int] = (0, 1)


@dataclass(slots=True)
class Files:
    """What paths lead to. `missing` are paths, or patterns, that lead to nothing."""

    sources: list[Source] = field(default_factory=list)
    unparsed: list[Unparsed] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)


def files_of(paths: Sequence[Path], kinds: Collection[Kind]) -> Files:
    """Return what is to be read of paths, in the order of the names; `kinds` are those that can be read."""
    found = _Search(kinds)
    for path in paths:
        found.take(path)
    found.files.sources.sort()
    return found.files


class _Search:
    """Goes through paths and keeps each file once."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self.kinds = kinds
        self.files = Files()
        self.seen: set[str] = set()
        self.projects: dict[str, int] = {}
        """Of each project, by its real path, its place among the sources."""

    def take(self, path: Path) -> None:
        """Take a path that was named: a file of any suffix, a folder, or a pattern for these."""
        if not os.path.lexists(path):
            matched = sorted(glob(str(path), recursive=True)) if has_magic(str(path)) else []
            if not matched:
                self.files.missing.append(path)
            for each in matched:
                self.take(Path(each))
            return
        project = self.project_of(path)
        if project is not None:
            self.add_project(project, path)
        elif os.path.isdir(path):
            self.walk(path)
        else:
            self.add(path, _KINDS.get(path.suffix.lower(), Kind.SQL))

    def project_of(self, path: Path) -> Path | None:
        """Return the dbt project that a file or folder is a part of; None where it is in none, or holds one."""
        absolute = Path(os.path.abspath(path))
        for folder in absolute.parents if Kind.DBT in self.kinds else ():
            if os.path.isfile(folder / PROJECT) and _is_of_dbt(absolute, folder):
                return folder if path.is_absolute() else Path(os.path.relpath(folder))
        return None

    def add_project(self, folder: Path, path: Path) -> None:
        real = os.path.realpath(folder)
        is_whole = os.path.realpath(path) == real
        place = self.projects.get(real)
        if place is None:
            self.projects[real] = len(self.files.sources)
            self.files.sources.append(Source(folder, Kind.DBT, () if is_whole else (path,)))
            return
        before = self.files.sources[place]
        only = () if is_whole or not before.only else (*before.only, path)
        self.files.sources[place] = Source(before.path, Kind.DBT, only)

    def walk(self, folder: Path) -> None:
        """Take what is below a folder, by suffix; of a dbt project, what dbt does not read."""
        pending: list[tuple[Path, Path | None]] = [(folder, None)]
        while pending:
            each, project = pending.pop()
            try:
                entries = sorted(os.scandir(each), key=lambda entry: entry.name)
            except OSError as error:
                self.files.unparsed.append(Unparsed(str(each), 1, 1, f"the folder cannot be listed: {_why(error)}"))
                continue
            if Kind.DBT in self.kinds and any(entry.name == PROJECT and entry.is_file() for entry in entries):
                self.add_project(each, each)
                project = each
            for entry in entries:
                path = each / entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not _is_left_out(path) and not (project and _is_of_dbt(path, project)):
                        pending.append((path, project))
                elif path.suffix.lower() in _KINDS and not os.path.isdir(path):
                    self.add(path, _KINDS[path.suffix.lower()])

    def add(self, path: Path, kind: Kind) -> None:
        real = os.path.realpath(path)
        if kind in self.kinds and real not in self.seen:
            self.seen.add(real)
            self.files.sources.append(Source(path, kind))


def _is_left_out(folder: Path) -> bool:
    """Whether a folder holds nothing that its owner wrote."""
    if folder.name.startswith(".") or folder.name in _LEFT_OUT or os.path.isfile(folder / _ENVIRONMENT):
        return True
    return folder.name in _MADE_BY_DBT and os.path.isfile(folder.parent / PROJECT)


def _is_of_dbt(path: Path, project: Path) -> bool:
    """Whether a path of a project lies in a folder that dbt reads."""
    parts = path.relative_to(project).parts
    return any(parts[: len(each)] == each for each in dbt_folders(str(project)))


@cache
def dbt_folders(project: str) -> frozenset[tuple[str, ...]]:
    """Return the folders of a dbt project that dbt reads, as the parts of their paths in it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    found = text_of(Path(project, PROJECT))
    try:
        said = YAML(typ="safe").load(found.text) if isinstance(found, Text) else {}
    except (YAMLError, ValueError, RecursionError):
        said = {}
    named = set(_READ_BY_DBT)
    for key, value in said.items() if isinstance(said, dict) else ():
        if str(key).endswith("-paths") and isinstance(value, list):
            named |= {str(each) for each in value}
    return frozenset(Path(each).parts for each in named)


def content_of(path: Path) -> bytes | Unparsed:
    """Return what a file holds; or why it is not read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return _unread(path, "it is no regular file")
        if status.st_size > SIZE_MAX:
            return _unread(path, f"it has {status.st_size:,} bytes, and at most {SIZE_MAX:,} are read")
        return path.read_bytes()
    except OSError as error:
        return _unread(path, f"it cannot be opened: {_why(error)}")


def text_of(path: Path) -> Text | Unparsed:
    """Return the text of a file, with every line end as one character; or why it cannot be read."""
    content = content_of(path)
    if isinstance(content, Unparsed):
        return content
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unparsed(str(path), content.count(b"\n", 0, error.start) + 1, 1, "it is not in UTF-8 from this line on")
    if "\0" in text:
        return _unread(path, "it holds a NUL character, so it is no text")
    return Text(str(path), text.replace("\r\n", "\n").replace("\r", "\n"))


def _unread(path: Path, why: str) -> Unparsed:
    return Unparsed(str(path), 1, 1, why)


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
