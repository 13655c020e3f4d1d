"""`reslice.yml`, read and checked: every mistake of the file in one error, or the contracts it declares.

Each mistake names file, line, column and key. Nothing here opens a database, and no message shows a secret.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reslice import contract_connection, contract_rules, contract_schema, contract_yaml
from reslice.contract import (
    Connection,
    Contract,
    GrainColumn,
    Guards,
    LedgerOptions,
    Line,
    Match,
    Measure,
    ProjectFile,
    Reconciliation,
    SliceColumn,
    SqlFile,
    Stamp,
    Timeouts,
)
from reslice.contract_rules import CONTROLS, FILE_BYTES_LIMIT, SqlFiles
from reslice.contract_values import NullsWord, one_line, shown
from reslice.contract_yaml import Document, KeyPath, Mistake
from reslice.errors import Failure, Misused

USUAL_NAME = "reslice.yml"
_MISTAKES_SHOWN = 100
_KEY_LENGTH = 200
_ASKED = "a contract file whose every key is known, complete and agrees with the others"
_UNCHANGED = "no database was opened; nothing was written"
_NO_PART_OF_DIGEST = frozenset({"lines", "digest", "ledger", "timeouts", "path"})
"""Fields that do not change which rows a run computes or which checks they have to pass."""


def load(path: str | Path, *, environ: Mapping[str, str] | None = None) -> ProjectFile:
    """Return what the contract file at `path` declares; `environ` stands for the process environment.

    Raises Misused, kind `contract`, with every mistake of the file.
    """
    file = Path(path)
    name = _display_name(file)
    document = contract_yaml.read(_text(path, name))
    files = SqlFiles(file.parent)
    connection: Connection | None = None
    checked: contract_schema.File | None = None
    if isinstance(document.data, Mapping):
        checked = _validate(document)
        contract_rules.check(document, files)
        connection = _connection(document, file.parent, os.environ if environ is None else environ)
    elif not document.mistakes:
        found = "an empty file" if document.data is None else shown(document.data)
        document.blame((), f"expected the keys version, connection and targets, found {found}")
    if document.mistakes:
        raise _misused(name, document)
    assert checked is not None and connection is not None, "without a mistake everything was read"
    targets = {
        target: _contract(target, declared, files, _lines(document, target, name))
        for target, declared in checked.targets.items()
    }
    return ProjectFile(file, connection, targets)


def _display_name(file: Path) -> str:
    """Return the path as it was given, relative where it lies below the current folder."""
    try:
        return str(file.relative_to(Path.cwd())) if file.is_absolute() else str(file)
    except (ValueError, OSError):
        return str(file)


def _text(path: str | Path, name: str) -> str:
    """Return the text of the file, or raise Misused with the reason why there is none."""
    way = "name the contract file with --config"
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(FILE_BYTES_LIMIT + 1)
        if len(content) <= FILE_BYTES_LIMIT:
            return content.decode("utf-8-sig")
        found = "larger than 1 MiB, which no contract is"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found, way = f"not UTF-8 text, at line {line}", f"save {one_line(name)} as UTF-8"
    except FileNotFoundError:
        raise _no_file(path, name) from None
    except OSError as error:
        found = f"cannot be read: {error.strerror or 'not a file'}"
    except ValueError:
        found = "not a path"
    raise _unreadable(name, found, way)


def _no_file(path: str | Path, name: str) -> Misused:
    """Return the error for a contract file that is not there; where another one is named, `meant` is a better one."""
    file = Path(path)
    if str(file) == USUAL_NAME:
        return _unreadable(name, "no such file", f"go to the folder that holds {USUAL_NAME}, or name it with --config")
    near = _near_file(file)
    hint = f"; did you mean {one_line(str(near))}?" if near else ""
    error = _unreadable(name, f"no such file{hint}", "name a contract file that is there")
    error.meant = (str(path), str(near or "FILE"))
    return error


def _near_file(file: Path) -> Path | None:
    """Return the contract file beside one that is not there: the one of the most similar name, or the usual one."""
    there = [each.name for each in file.parent.glob("*") if each.suffix in (".yml", ".yaml")]
    near = get_close_matches(file.name, there, n=1) or [each for each in there if each == USUAL_NAME]
    return file.with_name(near[0]) if near else None


def _unreadable(name: str, found: str, way: str) -> Misused:
    failure = Failure("contract", "a contract file in YAML", (f"{one_line(name)}: {found}",), way)
    return Misused(one_line(name), [failure], unchanged=_UNCHANGED)


def _validate(document: Document) -> contract_schema.File | None:
    """Return the validated file, or None after its mistakes were added to the document."""
    checked = None
    try:
        checked = contract_schema.File.model_validate(document.data)
    except ValidationError as error:
        for key, text in contract_schema.mistakes(error):
            document.blame(key, text, on_key=text.startswith("unknown key"))
    _nothings(document)
    return checked


def _nothings(document: Document) -> None:
    """Blame each key that is written with nothing behind it: only a measure may be."""
    blamed = {mistake.key for mistake in document.mistakes}
    for key in list(document.places):
        value: Any = document.data
        for part in key:
            value = value[part]
        is_measure = len(key) == 4 and key[0] == "targets" and key[2] == "measures"
        if value is None and not is_measure and key not in blamed:
            document.blame(key, "expected a value, found nothing")


def _connection(document: Document, folder: Path, environ: Mapping[str, str]) -> Connection | None:
    text = document.data.get("connection")
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        return contract_connection.read(text, folder, environ)
    except contract_connection.Mistaken as error:
        for mistake in error.mistakes:
            document.blame(("connection",), mistake)
    return None


def _misused(name: str, document: Document) -> Misused:
    ordered = sorted(dict.fromkeys(document.mistakes), key=lambda each: (each.line, each.column))
    found = [_sentence(name, mistake) for mistake in ordered[:_MISTAKES_SHOWN]]
    if len(ordered) > _MISTAKES_SHOWN:
        found.append(f"and {len(ordered) - _MISTAKES_SHOWN} more")
    targets = document.data.get("targets") if isinstance(document.data, Mapping) else None
    target = next(iter(targets), "TARGET") if isinstance(targets, Mapping) else "TARGET"
    way = f"correct the lines named above, then  reslice plan {shown(target)} RANGE"
    return Misused(one_line(name), [Failure("contract", _ASKED, tuple(found), way)], unchanged=_UNCHANGED)


def _sentence(name: str, mistake: Mistake) -> str:
    key = one_line(dotted(mistake.key), _KEY_LENGTH)
    return f"{one_line(name)}:{mistake.line}:{mistake.column}  {key}{': ' if key else ''}{mistake.text}"


def dotted(key: KeyPath) -> str:
    """Return keys joined by dots, positions of a list in brackets: `grain[0].nulls`."""
    joined = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return joined.removeprefix(".")


def _lines(document: Document, target: str, name: str) -> dict[str, Line]:
    """Return where each key of a target stands; an entry of a list goes by the column it names."""
    lines = {}
    for key, place in document.places.items():
        if key[:2] != ("targets", target) or len(key) == 2:
            continue
        below: KeyPath = key[2:]
        if len(below) > 1 and isinstance(below[1], int):
            item = document.data["targets"][target][below[0]][below[1]]
            below = (below[0], item["column"] if isinstance(item, Mapping) else item, *below[2:])
        lines[dotted(below)] = Line(name, *place.key, document.text_of(place.key[0]))
    return lines


def _contract(name: str, declared: contract_schema.Target, files: SqlFiles, lines: Mapping[str, Line]) -> Contract:
    measures = tuple(
        Measure(measure, options.min, options.nulls is NullsWord.ALLOW, options.scale)
        for measure, options in declared.measures.items()
    )

    def reconciliation(called: str, query: str, match: Mapping[str, str]) -> Reconciliation:
        known = [measure.name for measure in measures]
        matches = (Match(figure, contract_rules.match_of(text, known)) for figure, text in match.items())
        return Reconciliation(called, _sql(files, query), tuple(matches))

    controls = declared.controls
    contract = Contract(
        name=name,
        table=declared.table,
        source=_sql(files, declared.source),
        grain=tuple(GrainColumn(column.column, column.nulls is NullsWord.ALLOW) for column in declared.grain),
        slice=SliceColumn(declared.slice.column, declared.slice.unit, declared.slice.timezone),
        measures=measures,
        stamps=tuple(Stamp(column, value) for column, value in declared.stamps.items()),
        controls=reconciliation(CONTROLS, controls.source, controls.match) if controls else None,
        method=declared.method,
        guards=Guards(**dict(declared.guards)),
        affected=_sql(files, declared.affected) if declared.affected else None,
        downstream=tuple(reconciliation(key, each.query, each.match) for key, each in declared.downstream.items()),
        ledger=LedgerOptions(declared.ledger.schema_name, declared.ledger.keep_days),
        timeouts=Timeouts(**dict(declared.timeouts)),
        lines=lines,
    )
    return replace(contract, digest=digest(contract))


def _sql(files: SqlFiles, name: str) -> SqlFile:
    file = files.read(name)
    assert isinstance(file, SqlFile), "a file that cannot be read was a mistake"
    return file


def digest(contract: Contract) -> str:
    """Return the SHA-256 of everything in a contract that changes what a run computes or checks.

    Comments, line numbers and the connection do not count, nor does how the lines of a SQL file end.
    """
    canonical = json.dumps(_plain(contract), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, SqlFile):
        return value.text.strip().replace("\r\n", "\n")
    if is_dataclass(value):
        names: Iterable[str] = (field.name for field in fields(value) if field.name not in _NO_PART_OF_DIGEST)
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        # Equal numbers are one number however many zeros they end with; `normalize` would round to 28 digits.
        return f"{value:f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))
    return str(value) if isinstance(value, date | timedelta) else value
