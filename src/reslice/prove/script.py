"""A SQL file as a command: its statements, with their values in them, run one by one by a small program per engine.

Each statement is committed by itself, unless the script says BEGIN and COMMIT, as psql and the duckdb shell do. It ends
at the first statement that fails. `:name` stands for a value as SQL writes it: a number bare, anything else in quotes;
`:'name'` is always quoted, and `:"name"` is an identifier.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from reslice import engines, parameters
from reslice.engines.sql import quote, text_literal
from reslice.errors import Failure, Misused
from reslice.prove.shape import misused
from reslice.prove.values import Script

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r":(?:'([^\W\d]\w*)'|\"([^\W\d]\w*)\")")


@contextmanager
def command(script: Script, engine: str) -> Iterator[tuple[str, ...]]:
    """Give the words that run a script, for as long as the block lasts."""
    text = filled(script.path.read_text(encoding="utf-8"), script.parameters)
    program = Path(engines.__file__).parent / engine.removesuffix("ql") / "script.py"
    with tempfile.TemporaryDirectory(prefix="reslice-script-") as folder:
        file = Path(folder) / "statements.json"
        file.write_text(json.dumps(parameters.statements(text)), encoding="utf-8")
        yield sys.executable, "-P", str(program), str(file)


def check(script: Script) -> None:
    """Raise Misused[usage] when a script cannot be read, or when its values are not those that are given."""
    name = str(script.path)
    try:
        text = script.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise misused(name, "--sql FILE", f"{name} cannot be read: {found}", "name a SQL file") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("\\"):
            found = f"line {number} is a command of psql: {line.strip()[:60]}"
            raise misused(name, "--sql FILE: SQL alone", found, f"reslice prove … -- psql -f {name}")
    if not parameters.statements(text):
        raise misused(name, "--sql FILE: SQL", f"{name} holds no statement", "name a SQL file")
    _check_values(script, named(text))


def _check_values(script: Script, asked: set[str]) -> None:
    """Raise Misused[usage] unless a value is given for each name of a script, and for no other."""
    name, given = str(script.path), script.parameters
    missing, unasked = sorted(asked - given.keys()), sorted(given.keys() - asked)
    if not missing and not unasked:
        return
    meant = {each: near[0] for each in unasked for near in [difflib.get_close_matches(each, missing, n=1)] if near}
    found = [f"{name} names {_listed(missing)}, of which no value is given"] if missing else []
    names = f"it names {_listed(sorted(asked))}" if asked else "it names no value"
    found += [
        f"{name} has no :{each}; {f'did you mean :{meant[each]}?' if each in meant else names}" for each in unasked
    ]
    after = " ".join(f"--param {each}=…" for each in missing) or f"name {_listed(unasked)} in {name}, or give no value"
    failure = Failure("usage", "a value for each :name, and for no other", tuple(found), after)
    error = Misused(name, [failure], unchanged="the command was not run")
    if meant and len(meant) == len(missing) == len(unasked) == 1:
        one, other = unasked[0], missing[0]
        error.meant = (f"{one}={given[one]}", f"{other}={given[one]}")
    raise error


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f":{each}" for each in names)


def named(text: str) -> set[str]:
    """Return the names of the values that a script asks for."""
    quoted = {one or other for one, other in _QUOTED.findall(_outside(text))}
    return quoted | parameters.names(_QUOTED.sub("NULL", text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return the script with its values in it."""

    def put(found: re.Match[str]) -> str:
        one, other = found[1], found[2]
        return text_literal(values[one]) if one is not None else quote(values[other])

    body = _QUOTED.sub(put, text)
    return parameters.bind(body, {name: _written(value) for name, value in values.items()})


def _outside(text: str) -> str:
    """Return the script without its comments."""
    return "".join(each.text for each in parameters.tokens(text) if each.kind != "comment")


def _written(value: str) -> str:
    return value if _NUMBER.fullmatch(value) else text_literal(value)
