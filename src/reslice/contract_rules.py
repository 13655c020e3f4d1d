"""What one value of a contract cannot show alone: names that must agree, secrets out of place, and the SQL files.

The rules read the file as it is written, not as it was validated, so that a mistake in one key hides none in another.
Each tolerates anything that pydantic has already named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from reslice import parameters
from reslice.contract import Method, SqlFile, StampValue
from reslice.contract_connection import has_secret
from reslice.contract_values import near, one_line, shown
from reslice.contract_yaml import Document, KeyPath

FILE_BYTES_LIMIT = 1 << 20
CONTROLS = "controls"
_OUR_COLUMNS = "reslice:"

_SUM = re.compile(r"(?i)\s*sum\s*\(\s*(.+?)\s*\)\s*", re.DOTALL)
_COUNT = re.compile(r"(?i)\s*count\s*\(\s*\*\s*\)\s*")
_TABLE = re.compile(r'(?:"(?:[^"]|"")+"|[^".\s][^".]*)(?:\.(?:"(?:[^"]|"")+"|[^".\s][^".]*)){0,2}')
_SOURCE_BOUNDS = ((parameters.LOWER, "start"), (parameters.UPPER, "end"))

Named = list[tuple[str, KeyPath]]
"""Columns that a key names, each with where."""


class SqlFiles:
    """The SQL files of a contract, each read once; `read` remembers what is wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, SqlFile] = {}

    def read(self, name: str) -> SqlFile | str:
        """Return the file, or a sentence that says why it cannot be read."""
        if name not in self.files:
            path = self.folder / name
            try:
                with path.open("rb") as stream:
                    content = stream.read(FILE_BYTES_LIMIT + 1)
                if len(content) > FILE_BYTES_LIMIT:
                    return f"the file {one_line(name)} is larger than 1 MiB"
                self.files[name] = SqlFile(name, path, content.decode("utf-8-sig"))
            except FileNotFoundError:
                return f"there is no file {one_line(name)}{self._near(path)}"
            except OSError as error:
                return f"the file {one_line(name)} cannot be read: {error.strerror or 'not a file'}"
            except ValueError:
                return f"the file {one_line(name)} is not UTF-8 text"
        return self.files[name]

    def _near(self, path: Path) -> str:
        """Return a hint at a SQL file of the same folder whose name looks like the one that is missing."""
        try:
            stems = {each.stem: str(each.relative_to(self.folder)) for each in path.parent.glob("*.sql")}
        except (OSError, ValueError):
            return ""
        found = get_close_matches(path.stem, stems, n=1)
        return f"; did you mean {one_line(stems[found[0]])}?" if found else ""


def match_of(text: str, measures: Iterable[str]) -> str | None:
    """Return the measure that a match sums, None for count(*).

    Raises ValueError with what is wrong when the text is neither, or names no measure.
    """
    known = set(measures)
    if _COUNT.fullmatch(text):
        return None
    found = _SUM.fullmatch(text)
    if found is None:
        raise ValueError(f"expected sum(measure) or count(*), found {shown(text)}")
    if found[1] not in known:
        raise ValueError(f"{shown(found[1])} is no measure of this target{near(found[1], known)}")
    return found[1]


def check(document: Document, files: SqlFiles) -> None:
    """Add every mistake that the shape of the file does not show to the document."""
    data = document.data
    _secrets(document)
    targets = data.get("targets") if isinstance(data, Mapping) else None
    for name, target in _entries(targets):
        if isinstance(target, Mapping):
            _Target(document, ("targets", name), target).check(files)


def _secrets(document: Document) -> None:
    pending: list[tuple[KeyPath, Any]] = [((), document.data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, Mapping):
            pending += [((*key, name), each) for name, each in value.items()]
        elif isinstance(value, list):
            pending += [((*key, index), each) for index, each in enumerate(value)]
        elif isinstance(value, str) and has_secret(value) and key != ("connection",):
            document.blame(key, "a secret is only read in connection; write the value itself here")


class _Target:
    """The rules of one target, as it is written."""

    def __init__(self, document: Document, key: KeyPath, data: Mapping[str, Any]) -> None:
        self.document = document
        self.key = key
        self.data = data
        self.grain = self._listed("grain")
        measures = data.get("measures")
        self.measures = self._listed("measures") if isinstance(measures, list) else self._keyed("measures")
        self.stamps = self._keyed("stamps")

    def check(self, files: SqlFiles) -> None:
        table = self.data.get("table")
        if isinstance(table, str) and table.strip() and not _TABLE.fullmatch(table):
            self._blame(("table",), f"expected table, schema.table or catalog.schema.table, found {shown(table)}")
        self._columns()
        self._slice()
        self._versions()
        self._match((CONTROLS,), self.data.get(CONTROLS))
        for name, reader in _entries(self.data.get("downstream")):
            if name == CONTROLS:
                self._blame(("downstream", name), f"{CONTROLS} is taken; give the reader another name", on_key=True)
            self._match(("downstream", name), reader)
        self._sql(files)

    def _blame(self, below: KeyPath, text: str, *, on_key: bool = False) -> None:
        self.document.blame((*self.key, *below), text, on_key=on_key)

    def _listed(self, name: str) -> Named:
        found = self.data.get(name)
        named: Named = []
        for index, item in enumerate(found if isinstance(found, list) else []):
            column = item.get("column") if isinstance(item, Mapping) else item
            if isinstance(column, str):
                named.append((column, (name, index)))
        return named

    def _keyed(self, name: str) -> Named:
        return [(column, (name, column)) for column, _ in _entries(self.data.get(name))]

    def _columns(self) -> None:
        """No column is named twice. DuckDB tells no capitals apart in names, so no contract of any engine does."""
        seen: dict[str, tuple[str, KeyPath]] = {}
        for part, named in (("grain", self.grain), ("a measure", self.measures), ("a stamp", self.stamps)):
            for column, key in named:
                first = seen.setdefault(column.casefold(), (part, key))
                if first[0] != part:
                    self._blame(
                        key, f"{shown(column)} is already {first[0]}; a column has one part to play", on_key=True
                    )
                elif first[1] != key:
                    self._blame(key, f"{shown(column)} is named twice", on_key=True)
                elif column.casefold().startswith(_OUR_COLUMNS):
                    self._blame(key, f"names that begin with {_OUR_COLUMNS} are taken", on_key=True)

    def _slice(self) -> None:
        found = self.data.get("slice")
        column = found.get("column") if isinstance(found, Mapping) else None
        grain = [name for name, _ in self.grain]
        if isinstance(column, str) and grain and column not in grain:
            hint = near(column, grain) or f"; the grain is {shown(', '.join(grain))}"
            self._blame(("slice", "column"), f"the slice column {shown(column)} is not in the grain{hint}")
        for index, item in enumerate(self.data["grain"] if isinstance(self.data.get("grain"), list) else []):
            if isinstance(item, Mapping) and item.get("column") == column and item.get("nulls") == "allow":
                text = "the slice column decides which slice a row belongs to and cannot be NULL"
                self._blame(("grain", index, "nulls"), text)

    def _versions(self) -> None:
        """Versions need a column by which they are told apart: the run that wrote them."""
        stamps = [value for _, value in _entries(self.data.get("stamps"))]
        if self.data.get("method") == Method.APPEND_VERSION and StampValue.RUN_ID not in stamps:
            text = "append_version tells versions apart by a column that holds the run's id: stamps: {batch_id: run_id}"
            self._blame(("method",), text)

    def _match(self, key: KeyPath, data: object) -> None:
        match = data.get("match") if isinstance(data, Mapping) else None
        sliced = self.data.get("slice")
        column = sliced.get("column") if isinstance(sliced, Mapping) else None
        for figure, text in _entries(match):
            if isinstance(column, str) and figure.casefold() == column.casefold():
                self._blame((*key, "match", figure), "the slice column is not a figure to match", on_key=True)
            if isinstance(text, str) and text.strip() and self.measures:
                try:
                    match_of(text, [name for name, _ in self.measures])
                except ValueError as error:
                    self._blame((*key, "match", figure), str(error))

    def _sql(self, files: SqlFiles) -> None:
        for key, name in _sql_keys(self.data):
            if not isinstance(name, str) or not name.strip() or has_secret(name):
                continue
            found = files.read(name)
            for text in [found] if isinstance(found, str) else _faults(found, key):
                self._blame(key, text)


def _entries(value: object) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()


def _sql_keys(target: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the keys of a target that name a SQL file, with the name."""
    yield ("source",), target.get("source")
    yield ("affected",), target.get("affected")
    controls = target.get(CONTROLS)
    if isinstance(controls, Mapping):
        yield (CONTROLS, "source"), controls.get("source")
    for name, reader in _entries(target.get("downstream")):
        if isinstance(reader, Mapping):
            yield ("downstream", name, "query"), reader.get("query")


def _faults(file: SqlFile, key: KeyPath) -> Iterator[str]:
    """Yield what is wrong with a SQL file for the key that names it."""
    sql, name = file.text, one_line(file.name)
    statements = parameters.statements(sql)
    if len(statements) != 1:
        found = f"{len(statements)} statements" if statements else "no statement"
        yield f"expected one SELECT in {name}, found {found}"
    flaw = parameters.flaw(sql)
    if flaw is not None:
        yield f"{name}: {flaw}"
    verb = parameters.main_verb(statements[0]) if statements else "SELECT"
    if verb not in parameters.READING_VERBS and (verb or flaw is None):
        yield f"expected a SELECT in {name}, found {shown(verb) if verb else 'none'}"
    allowed = (parameters.SINCE,) if key == ("affected",) else parameters.BOUNDS
    for placeholder in parameters.unknown(sql, allowed):
        hint = f"; did you mean :{placeholder.near}?" if placeholder.near else f"; here there are {_listing(allowed)}"
        yield f"{name}, line {placeholder.line}: unknown placeholder :{shown(placeholder.name)}{hint}"
    names = parameters.names(sql)
    if key == ("source",):
        for either, example in _SOURCE_BOUNDS:
            if not names.intersection(either):
                yield f"{name} has no :{example}; the source must keep to the range it is given"
    if key == ("affected",) and parameters.SINCE not in names:
        yield f"{name} has no :{parameters.SINCE}; it tells which slices were touched since then"


def _listing(names: Iterable[str]) -> str:
    return ", ".join(f":{name}" for name in names)
