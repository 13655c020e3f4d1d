"""The YAML files of a dbt project as plain values. Templates in them are read and never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from reslice.audit.files import text_of
from reslice.audit.finding import Unparsed
from reslice.audit.text import Text
from reslice.reading.jinja import UNKNOWN, plain
from reslice.reading.rendered import rendered

_ALIASES = re.compile(r"(?m)(?:^|[\s:\[,-])[&*][A-Za-z0-9_-]+")
_ALIASES_MAX = 5000


def loaded(path: Path) -> tuple[Text | None, Mapping[str, Any], Unparsed | None]:
    """Return the text of a YAML file, what it holds, and why it could not be read where that is so."""
    text = text_of(path)
    if isinstance(text, Unparsed):
        return None, {}, text
    if len(_ALIASES.findall(text.text)) > _ALIASES_MAX:
        return text, {}, Unparsed(text.path, 1, 1, f"more than {_ALIASES_MAX} anchors and aliases are not read")
    reader = YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = True
    try:
        found = reader.load(text.text)
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        why = str(getattr(error, "problem", None) or type(error).__name__)
        return text, {}, Unparsed(text.path, line, column, f"not read as YAML: {why}")
    return text, found if isinstance(found, dict) else {}, None


def settled(value: object, variables: Mapping[str, object]) -> object:
    """Return a value of a YAML file with its templates worked out; UNKNOWN where one says what cannot be known.

    What aliases share is worked out once, and is shared in the answer as well.
    """
    return _settled(value, variables, {})


def _settled(value: object, variables: Mapping[str, object], shared: dict[int, object]) -> object:
    if isinstance(value, str):
        return _worked_out(value, variables) if "{{" in value else value
    if not isinstance(value, list | dict):
        return value
    if id(value) not in shared:
        shared[id(value)] = UNKNOWN  # for a value that holds itself
        shared[id(value)] = (
            [_settled(each, variables, shared) for each in value]
            if isinstance(value, list)
            else {str(key): _settled(each, variables, shared) for key, each in value.items()}
        )
    return shared[id(value)]


def _worked_out(value: str, variables: Mapping[str, object]) -> object:
    found = rendered(value, variables=variables)
    if len(found.pieces) == 1:
        piece = found.pieces[0]
        given = plain(piece.value)
        if isinstance(given, str | int | float | list | dict):
            return given
    return UNKNOWN


def maps(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of a list; nothing where it is none."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping, an empty one where the value is none."""
    return value if isinstance(value, dict) else {}
