"""A SQL file as a command: `python -m reslice.prove.script FILE NAME=VALUE…` runs it, statement by statement.

Each statement is committed by itself, unless the script says BEGIN and COMMIT, as psql and the duckdb shell do. It ends
at the first statement that fails. `:name` stands for a value as SQL writes it: a number bare, anything else in quotes;
`:'name'` is always quoted, and `:"name"` is an identifier.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from reslice import parameters
from reslice.contract import Connection
from reslice.engines.sql import quote, text_literal
from reslice.prove.places import SANDBOXES
from reslice.prove.shape import misused
from reslice.prove.values import Script

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r":(?:'([^\W\d]\w*)'|\"([^\W\d]\w*)\")")


def command(script: Script) -> tuple[str, ...]:
    """Return the words that run a script."""
    given = [f"{name}={value}" for name, value in script.parameters.items()]
    return sys.executable, "-m", "reslice.prove.script", str(script.path.absolute()), *given


def check(script: Script) -> None:
    """Raise Misused[usage] when a script cannot be read, or names a value that is not given."""
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
    missing = [each for each in sorted(named(text)) if each not in script.parameters]
    if missing:
        found = f"{name} names {', '.join(f':{each}' for each in missing)}, of which no value is given"
        raise misused(name, "a value for each :name", found, " ".join(f"--param {each}=…" for each in missing))
    if not parameters.statements(text):
        raise misused(name, "--sql FILE: SQL", f"{name} holds no statement", "name a SQL file")


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


def main(arguments: Sequence[str]) -> int:
    """Run the script in the database that the environment names; print what fails, and end with 1 then."""
    path, *given = arguments
    values = dict(each.split("=", 1) for each in given)
    url = os.environ["RESLICE_URL"]
    engine = "duckdb" if url.startswith("duckdb:") else "postgresql"
    file = os.environ.get("RESLICE_PATH")
    connection = Connection(engine, url, engine, Path(file) if file else None)
    text = filled(Path(path).read_text(encoding="utf-8"), values)
    trouble: str = importlib.import_module(SANDBOXES[engine]).run_script(connection, parameters.statements(text))
    if trouble:
        sys.stderr.write(f"{Path(path).name}: {trouble}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
