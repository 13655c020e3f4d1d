"""A Python file as an audit reads it: the SQL that it runs, the frames that it writes, and whose dates they are.

The file is parsed and never run. What it does to a database, in the order in which it is written, becomes one script,
so that every rule on SQL judges it, at the place in the file where the SQL stands.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import sqlglot

from reslice.audit.files import Source, text_of
from reslice.audit.finding import Finding, Unparsed
from reslice.audit.known import Known
from reslice.audit.python_calls import Event, Mark, SqlCall, events_of, may_write
from reslice.audit.python_driver import dialect_of, modules_of, opens_transaction
from reslice.audit.python_frames import FrameWrite, Mode, rows_of
from reslice.audit.python_scope import Scope, scopes_of
from reslice.audit.python_text import Spelled, Speller
from reslice.audit.reader import Answer, within_limits
from reslice.audit.rule import rules
from reslice.audit.script import script_of
from reslice.audit.sql import finding, judged
from reslice.audit.text import Text
from reslice.reading import parse


@dataclass(frozen=True, slots=True)
class Module:
    """A Python file: its events, each with the scope in which it stands, and the modules that it imports."""

    text: Text
    speller: Speller
    events: tuple[tuple[Scope, Event], ...]
    modules: frozenset[str]

    @property
    def is_scheduled(self) -> bool:
        """Whether a scheduler with data intervals runs it."""
        return any(each.partition(".")[0] in ("airflow", "dagster", "prefect", "mage_ai") for each in self.modules)


def answer(source: Source, dialect: str | None, known: Known) -> Answer:
    """Return what a Python file says of what it writes."""
    text = text_of(source.path)
    if isinstance(text, Unparsed):
        return Answer(unparsed=(text,), was_read=False)
    return within_limits(text, partial(_answer, text, dialect, known))


def _answer(text: Text, dialect: str | None, known: Known) -> Answer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in other people's files
            tree = ast.parse(text.text)
    except SyntaxError as error:
        line = min(error.lineno or 1, text.text.count("\n") + 1)
        why = f"no Python 3: {error.msg}"
        return Answer((text,), (), (Unparsed(text.path, line, error.offset or 1, why),), was_read=False)
    modules = modules_of(tree)
    own = dialect or dialect_of(modules, text.text)
    combined = Combined(opens_transaction(modules, text.text))
    found: list[tuple[Scope, Event]] = []
    speller = None
    for scope in scopes_of(tree):
        speller = Speller(text, scope.value)
        events = events_of(scope, speller)
        if events.is_own and events.events:
            combined.mark("COMMIT", 0)
        for event in events.events:
            found.append((scope, event))
            combined.take(event, scope, speller, own)
    module = Module(text, speller or Speller(text, lambda node: None), tuple(found), modules)
    findings = list(_of_module(module))
    unread = list(combined.unread(text))
    if combined.has_writes:
        more, unparsed = _of_script(combined, text, own, known, _parts(tree, module.speller))
        findings += more
        unread += unparsed
    return Answer((text,), tuple(findings), tuple(unread))


def _of_module(module: Module) -> Iterator[Finding]:
    for rule in rules().values():
        for found in rule.checks["module"](module) if "module" in rule.checks else ():
            yield finding(rule, found, module.text)


def _of_script(
    combined: Combined,
    text: Text,
    dialect: str | None,
    known: Known,
    parts: tuple[tuple[int, int, frozenset[str]], ...],
) -> tuple[list[Finding], list[Unparsed]]:
    read = parse.read(text.path, combined.text, dialect)
    script = script_of(read, text, known=known, in_transaction=combined.in_transaction)
    script.pieces, script.is_guessed, script.parts = tuple(combined.pieces), dialect is None, parts
    unread = []
    for at, why in zip(read.unread_at, read.unread, strict=True):
        place = text.place(*(script.origin(at),) * 2)
        unread.append(Unparsed(place.path, place.line, place.column, why))
    return list(judged(script)), unread


def _parts(tree: ast.Module, speller: Speller) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return where the functions of a file begin and end, each with its own name and those that it is named in."""
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    named: dict[str, set[str]] = {}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, holder = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node)
            holder = node.name
        elif isinstance(node, ast.Name):
            named.setdefault(node.id, set()).add(holder)
        elif isinstance(node, ast.Attribute):
            named.setdefault(node.attr, set()).add(holder)
        pending += [(child, holder) for child in ast.iter_child_nodes(node)]
    return tuple(
        (
            speller.offset(each.lineno, each.col_offset),
            speller.offset(each.end_lineno or each.lineno, each.end_col_offset or 0),
            frozenset({each.name} | named.get(each.name, set())),
        )
        for each in functions
    )


class Combined:
    """The statements of a file as one text, and where in the file its characters come from."""

    def __init__(self, in_transaction: bool) -> None:
        self.in_transaction = in_transaction
        self.text = ""
        self.pieces: list[tuple[int, int]] = []
        self.has_writes = False
        self._unread: list[tuple[int, str]] = []

    def take(self, event: Event, scope: Scope, speller: Speller, dialect: str | None) -> None:
        """Add what an event does."""
        if isinstance(event, Mark):
            self.mark(event.word, event.at)
        elif isinstance(event, SqlCall):
            self._sql(event.spelled, dialect)
        elif isinstance(event, FrameWrite):
            self._frame(event, scope, speller)

    def mark(self, word: str, at: int) -> None:
        """Add a statement that is not written in the file as such."""
        self._add(word, at)
        self._end(at)

    def unread(self, text: Text) -> Iterator[Unparsed]:
        """Yield the texts that are not made of words of SQL."""
        for at, why in self._unread:
            place = text.place(at, at)
            yield Unparsed(place.path, place.line, place.column, why)

    def _add(self, text: str, at: int) -> None:
        self.pieces.append((len(self.text), at))
        self.text += text

    def _end(self, at: int) -> None:
        self.pieces.append((len(self.text), at))
        self.text += "\n;\n"

    def _sql(self, spelled: Spelled, dialect: str | None) -> None:
        if not may_write(spelled.text):
            return
        try:
            sqlglot.tokenize(spelled.text, dialect=dialect)
        except parse.UNREADABLE as error:
            self._unread.append((spelled.places[0][1], str(error).splitlines()[0][:200]))
            return
        self.has_writes = True
        for index, (here, there) in enumerate(spelled.places):
            end = spelled.places[index + 1][0] if index + 1 < len(spelled.places) else len(spelled.text)
            self._add(spelled.text[here:end], there)
        self._end(spelled.places[-1][1])

    def _frame(self, write: FrameWrite, scope: Scope, speller: Speller) -> None:
        spelled = speller.spelled(write.table)
        name = spelled.text if spelled is not None else f"{{{ast.unparse(write.table)[:60]}}}"
        if not all(part.isidentifier() or part.startswith("{") for part in name.split(".")):
            return  # no table: a path of files
        self.has_writes = True
        at, table_at = speller.span(write.call)[0], speller.span(write.table)[0]
        verb = {Mode.REPLACE: "CREATE OR REPLACE TABLE ", Mode.SCOPE: "INSERT OVERWRITE TABLE "}
        self._add(verb.get(write.mode, "INSERT INTO "), at)
        self._add(name, table_at + 1)
        if write.mode is Mode.REPLACE:
            self._add(" AS ", at)
        elif write.mode is Mode.WHERE:
            self._add(f" REPLACE WHERE {write.condition or 'true'} ", at)
        elif write.mode is Mode.PARTITIONS:
            self._add(" REPLACE WHERE {partitions} = {partitions} ", at)
        self._add(f" {rows_of(write.frame, scope, speller)}", at)
        self._end(at)
