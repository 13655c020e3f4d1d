"""Puts a draft on disk: a new contract file, or one more target in a file that is there, and its source.

No file is ever overwritten, and of a contract file that is there not one other line changes. Either both files are
written or neither is.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reslice import contract_yaml, parameters
from reslice.errors import Failure, Misused, Refused
from reslice.init.draft import Draft
from reslice.init.text import new_file, target_lines

_NAME = re.compile(r"[^\w.-]+")
_UNCHANGED = "no file was written"


def source_name(folder: Path, target: str) -> tuple[str, bool]:
    """Return where the source of a target goes, relative to the contract; and whether a usable one is there already."""
    first = next(_names(target))
    if _is_source(folder / first):
        return first, True
    return free_name(folder, target), False


def free_name(folder: Path, target: str) -> str:
    """Return a name for the source of a target that no file has yet."""
    for name in _names(target):
        if not os.path.lexists(folder / name):
            return name
    raise _in_the_way(folder / next(_names(target)))


def _names(target: str) -> Iterator[str]:
    stem = _NAME.sub("_", target).strip("._-") or "target"
    yield f"sql/{stem}.sql"
    yield from (f"sql/{stem}_source{number}.sql" for number in ("", *range(2, 100)))


def _is_source(path: Path) -> bool:
    """Whether a file holds one SELECT that keeps to a range, as a contract wants it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return False
    names = parameters.names(text)
    is_bounded = all(names.intersection(each) for each in (parameters.LOWER, parameters.UPPER))
    statements = parameters.statements(text)
    reads = len(statements) == 1 and parameters.main_verb(statements[0]) in parameters.READING_VERBS
    return is_bounded and reads and not parameters.unknown(text, parameters.BOUNDS) and parameters.flaw(text) is None


def _in_the_way(path: Path) -> Misused:
    failure = Failure("usage", "a new file", (f"{path} is in the way; init overwrites nothing",), "reslice init --help")
    return Misused(str(path), [failure], unchanged=_UNCHANGED)


def contract_text(draft: Draft, file: Path, connection: str) -> str:
    """Return the contract file with the draft in it: a new one, or the one that is there with one more target."""
    if not file.exists():
        return new_file(connection, draft)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        before = stream.read()
    after = _inserted(before, draft)
    if after is None or not _adds_only(before, after, draft):
        after = _round_trip(before, draft)
    if not _adds_only(before, after, draft):
        failure = Failure(
            "usage",
            "one more target below targets:",
            (f"{file.name} has a form that init cannot add to",),
            "add it by hand",
        )
        raise Misused(file.name, [failure], unchanged=_UNCHANGED)
    return after


def _inserted(before: str, draft: Draft) -> str | None:
    """Return the text with the target's lines behind the last target; None where targets are not written in lines."""
    document = contract_yaml.read(before)
    targets = [place for key, place in document.places.items() if len(key) == 2 and key[0] == "targets"]
    own = document.places.get(("targets",))
    if not targets or own is None or targets[0].key[0] == own.key[0]:
        return None
    newline = "\r\n" if "\r\n" in before else "\n"
    lines = before.split(newline)
    below = [place.key[0] for key, place in document.places.items() if len(key) == 1 and place.key[0] > own.key[0]]
    end = min(below) - 1 if below else len(lines)
    indent = targets[0].key[1] - 1
    while end > 0 and _belongs_below(lines[end - 1], indent):
        end -= 1
    added = target_lines(draft, indent=" " * indent)
    return newline.join([*lines[:end], *added, *(lines[end:] or [""])])


def _belongs_below(line: str, indent: int) -> bool:
    """Whether a line is empty, or a comment further out than the targets: it is no part of the last target."""
    text = line.strip()
    return not text or text == "..." or (text.startswith("#") and len(line) - len(line.lstrip()) < indent)


def _adds_only(before: str, after: str, draft: Draft) -> bool:
    """Whether the second text says what the first one says, and the target, and nothing else."""
    old, new = contract_yaml.read(before), contract_yaml.read(after)
    if old.mistakes or new.mistakes or not isinstance(new.data, Mapping):
        return False
    targets = dict(new.data.get("targets", {}))
    added = targets.pop(draft.name, None)
    return isinstance(added, Mapping) and old.data == {**new.data, "targets": targets}


def _round_trip(before: str, draft: Draft) -> str:
    """Return the text with the target added by ruamel, which keeps comments and order."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    data: Any = yaml.load(before)
    added: Any = YAML().load("\n".join(["targets:", *target_lines(draft)]))
    data["targets"][draft.name] = added["targets"][draft.name]
    text = StringIO()
    yaml.dump(data, text)
    return text.getvalue()


def write(draft: Draft, file: Path, contract: str, *, is_source_there: bool) -> tuple[str, ...]:
    """Write source and contract and return their names; on any failure neither is there."""
    folder = file.parent
    source = folder / draft.source_name
    written: list[Path] = []
    try:
        if not is_source_there:
            source.parent.mkdir(parents=True, exist_ok=True)
            _write_new(source, draft.source)
            written.append(source)
        if file.exists():
            _replace(file.resolve(), contract)
        else:
            _write_new(file, contract)
        written.append(file)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            raise _in_the_way(Path(str(error.filename))) from error
        found = f"{error.filename}: {error.strerror or error}"
        failure = Failure("target_rights", f"to write {file.name} and {draft.source_name}", (found,), "")
        raise Refused(file.name, [failure], unchanged=_UNCHANGED) from error
    return tuple(str(path) for path in reversed(written))


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there; FileExistsError when somebody made one meanwhile."""
    with path.open("x", encoding="utf-8", newline="") as stream:
        stream.write(text)


def _replace(path: Path, text: str) -> None:
    """Put a text in the place of a file at once: a reader sees the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        shutil.copymode(path, name)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
