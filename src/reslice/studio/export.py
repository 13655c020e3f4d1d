"""A copy of the studio as files: every target, every period, and the runs that the pages list.

It works without a server, from a folder or a `file://` address. What only a server can do is left out. A copy is
rendered whole before the first file is written, and is never put among files that are not of an earlier copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reslice.errors import Failure, Misused
from reslice.studio import first_view, pages, run_view, target_view
from reslice.studio.links import Links
from reslice.studio.standing import Words
from reslice.studio.values import Ask, View, slug

if TYPE_CHECKING:
    from reslice.project import Project

LIST = "reslice-studio.json"
"""The file by which a copy is known again: it names every other file."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """What is copied, and the runs of which the copy has a page."""

    project: Project
    name: str
    place: str
    names_ledger: bool
    words: Words
    kept: frozenset[tuple[str, str]] = frozenset()

    def ask(self, root: str, path: Mapping[str, str], **query: str) -> Ask:
        """Return the question for a page whose way back to the folder is `root`."""
        links = Links(root, is_static=True, kept=self.kept, names_ledger=self.names_ledger)
        return Ask(self.project, links, self.place, path, query, self.words)

    def files(self, view: View, ask: Ask, path: str) -> Iterator[tuple[str, bytes]]:
        """Yield the page of a view and its twin beside it."""
        page = pages.html(view, ask.links, PurePosixPath(path).name, self.name)
        yield path, page.encode("utf-8", "replace")
        yield f"{path.removesuffix('.html')}.json", pages.twin(view).encode("utf-8", "replace")


def export(project: Project, folder: Path, *, name: str, place: str) -> int:
    """Make `folder` hold a copy as of now, and return how many files it has.

    Raises Misused[usage] when it may not be put there, or cannot be written.
    """
    refuse(folder)
    files = dict(_files(project, name, place))
    earlier = _listed(folder)
    unchanged = "nothing was written"
    try:
        for path, content in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            unchanged = "the folder holds a part of the copy"
            file.write_bytes(content)
        (folder / LIST).write_text(json.dumps({"schema": "reslice/studio_copy/1", "files": sorted(files)}, indent=1))
        for path in earlier - set(files):
            (folder / path).unlink(missing_ok=True)
    except OSError as error:
        found = f"{error.filename or folder}: {error.strerror or error}"
        raise _misused(folder, found, unchanged) from error
    return len(files)


def refuse(folder: Path) -> None:
    """Raise Misused[usage] when the folder holds anything that is not of an earlier copy."""
    try:
        found = _in_the_way(folder)
    except (OSError, ValueError) as error:  # it cannot be looked at, or its name is none
        found = getattr(error, "strerror", None) or str(error)
    if found:
        raise _misused(folder, found)


def _in_the_way(folder: Path) -> str:
    """Return why no copy is put there; empty when one may be."""
    if folder.is_dir():
        is_taken = any(folder.iterdir()) and not (folder / LIST).is_file()
        return "it is not empty, and holds no earlier copy; nothing in it is overwritten" if is_taken else ""
    return "it is there, and is no folder" if folder.exists() or folder.is_symlink() else ""


def _misused(folder: Path, found: str, unchanged: str = "nothing was written") -> Misused:
    asked = "an empty folder, a new one, or one that holds an earlier copy"
    failure = Failure("usage", asked, (found,), "reslice studio --export studio-copy")
    return Misused(f"studio --export {folder}", [failure], unchanged=unchanged)


def _files(project: Project, name: str, place: str) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a copy."""
    schemas = {project.target(each).contract.ledger.schema for each in project.targets}
    looked = _Copy(project, name, place, len(schemas) > 1, Words())
    kept = frozenset(
        (target, row["run"]) for target in project.targets for row in _target(looked, target).values["runs"]
    )
    copy = _Copy(project, name, place, len(schemas) > 1, looked.words, kept)
    ask = copy.ask("", {})
    yield from copy.files(first_view.view(ask), ask, "index.html")
    for target in project.targets:
        ask = copy.ask("../", {"target": slug(target)})
        view = _target(copy, target)
        yield from copy.files(view, ask, f"target/{slug(target)}.html")
        for each in view.values["periods"]:
            if each["period"]:
                path = f"target/{ask.links.file_of_target(target, each['period'])}.html"
                yield from copy.files(_target(copy, target, each["period"]), ask, path)
    for target, run_id in sorted(kept):
        ask = copy.ask("../", {"run": run_id}, target=target)
        yield from copy.files(run_view.view(ask), ask, f"run/{ask.links.file_of(run_id, target)}.html")
    for file, (source, _) in pages.STATIC.items():
        yield f"static/{file}", source.read_bytes()


def _target(copy: _Copy, target: str, period: str = "") -> View:
    return target_view.view(copy.ask("../", {"target": slug(target)}, period=period))


def _listed(folder: Path) -> set[str]:
    """Return the files of an earlier copy that are there as it wrote them: plain files below the folder."""
    try:
        names = json.loads((folder / LIST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    found = {name for name in names if isinstance(name, str)}
    home = folder.resolve()
    return {name for name in found if (folder / name).is_file() and (folder / name).resolve().is_relative_to(home)}
