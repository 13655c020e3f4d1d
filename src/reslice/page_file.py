"""The file of a page: whether it can be written, and writing it wholly or not at all."""

from __future__ import annotations

import os
from pathlib import Path

_MARK = b'<meta name="generator" content="reslice run page">'
_HEAD_BYTES = 4096
"""The mark of a page stands within this many bytes of its beginning."""


def trouble(path: Path) -> str:
    """Return why no page can be written there, or nothing. A file that is no page of ours is not overwritten."""
    folder = path.parent
    if "\0" in str(path):
        return "its name holds a NUL character"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if path.is_dir():
        return f"{path} is a folder"
    if os.path.lexists(path) and not _is_page(path):
        return f"{path} is there, and reslice did not write it; it is not overwritten"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"nothing may be written into {folder}"
    return ""


def write(path: Path, text: str) -> None:
    """Make `path` hold the page; whoever reads it finds the old file or the new one. OSError when it cannot be."""
    found = trouble(path)
    if found:
        raise OSError(found)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _is_page(path: Path) -> bool:
    """Whether it is an ordinary file that is empty, or one of our pages."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return not head or _MARK in head
