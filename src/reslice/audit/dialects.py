"""In which dialect a file is, where its owner says so: the `dialect` of `.sqlfluff`, or a suffix of one database."""

from __future__ import annotations

import configparser
import os
from functools import cache
from pathlib import Path

from reslice.reading import parse

_FILE = ".sqlfluff"
_CALLED = {"sparksql": "spark", "greenplum": "postgres", "athena": "athena", "mariadb": "mysql"}
"""Of dialects of that tool, those that go by another name here."""
_SUFFIXES = {".hql": "hive"}


def dialect_for(path: Path) -> str | None:
    """Return the dialect that the nearest `.sqlfluff` in the folders of a file names, or else the file's own suffix.

    None where neither does.
    """
    for folder in Path(os.path.abspath(path)).parents:
        found = _said_in(str(folder))
        if found is not None:
            return found
    return _SUFFIXES.get(path.suffix.lower())


@cache
def _said_in(folder: str) -> str | None:
    file = Path(folder, _FILE)
    if not file.is_file():
        return None
    reader = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        reader.read_string(file.read_text(encoding="utf-8"))
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None
    name = reader.get("sqlfluff", "dialect", fallback="").strip().lower()
    name = _CALLED.get(name, name)
    return name if name in parse.dialects() else None
