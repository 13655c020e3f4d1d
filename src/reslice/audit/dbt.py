"""A dbt project as an audit reads it: its models, how each writes when it is run again, and what the rules say.

Nothing of a project is run: templates are read as far as they say something by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reslice.audit.dbt_adapter import hinted
from reslice.audit.dbt_model import Model
from reslice.audit.dbt_models import models_of
from reslice.audit.dbt_project import Project, read_project
from reslice.audit.dbt_query import write_of
from reslice.audit.files import Source, text_of
from reslice.audit.finding import Finding, Sort, Unparsed
from reslice.audit.known import Known
from reslice.audit.reader import Answer, within_limits
from reslice.audit.rule import Found, Rule, rules
from reslice.audit.sql import finding, unparsed
from reslice.audit.text import Text

_STRATEGY = "RS501"
"""The rule that says of what is not known how it writes."""

_INSTEAD = {
    "RS501": ("RS1",),
    "RS502": ("RS1", "RS2", "RS3", "RS501", "RS504", "RS505"),
    "RS504": ("RS301",),
    "RS505": ("RS1", "RS2"),
}
"""Of a rule on dbt, the rules, or the first letters of several, that would say the same of the write."""


def answer(source: Source, dialect: str | None, known: Known) -> Answer:
    """Return what a dbt project says; of a part of it, what the files that were asked for say."""
    project = read_project(source.path, dialect)
    found = models_of(project)
    if project.adapter is None:
        project.adapter = hinted({key: each.value for key, each in model.config.items()} for model in found.models)
        for model in found.models:
            model.adapter = project.adapter
    number, count = source.part
    answers = [_read(model, project, known) for model in [*found.models][number::count]]
    if number:
        return _asked_for(source, answers)
    answers += [_python(text) for text in found.python]
    answers += [_snapshot(path) for folder in project.snapshot_folders() for path in sorted(folder.rglob("*.sql"))]
    said = (*project.unparsed, *found.unparsed)
    answers.append(Answer(tuple(project.texts.values()), (), said, was_read=False))  # no model is in these
    return _asked_for(source, answers)


def _read(model: Model, project: Project, known: Known) -> Answer:
    return within_limits(model.text, lambda: _judged(model, project, known))


def _judged(model: Model, project: Project, known: Known) -> Answer:
    table = model.declared.name
    unread = write_of(model, {**known, table: model.declared}, project.variables)
    said = tuple(_said(model))
    return Answer((model.text,), said, tuple(unparsed(model.text, unread)), was_read=not unread)


def _said(model: Model) -> Iterator[Finding]:
    """Yield what the rules say of a model and of its write; of two that say the same, only the one on dbt."""
    begins = model.text.line_of(model.span[0])
    found: list[tuple[Rule, Found]] = []
    for rule in rules().values():
        if "model" in rule.checks:
            found += [(rule, each) for each in rule.checks["model"](model)]
    told = {rule.code for rule, each in found if each.sort is Sort.FINDING}
    quiet = tuple(code for own, codes in _INSTEAD.items() if own in told for code in codes)
    if model.strategy == "microbatch":
        quiet += ("RS2",)  # dbt itself makes both the range that is deleted and the one that is read
    for rule in rules().values() if model.write is not None else ():
        if "write" in rule.checks:
            found += [(rule, each) for each in rule.checks["write"](model.write)]
    for rule, each in found:
        if rule.code.startswith(quiet) and quiet:
            continue
        yield finding(rule, each, model.text, table=model.declared.name, begins=begins)


def _python(text: Text) -> Answer:
    detail = "a model in Python is not read: whether it keeps rows from run to run is not known"
    return Answer((text,), (_unknown(text, detail),))


def _snapshot(path: Path) -> Answer:
    text = text_of(path)
    if isinstance(text, Unparsed):
        return Answer((), (), (text,), was_read=False)
    if "{% snapshot" not in text.text and "{%- snapshot" not in text.text:
        return Answer()
    return Answer((text,), (_unknown(text, "a snapshot is not read: its rows are what was seen when it ran"),))


def _unknown(text: Text, detail: str) -> Finding:
    return finding(rules()[_STRATEGY], Found((0, 0), detail, Sort.UNKNOWN), text)


def _asked_for(source: Source, answers: list[Answer]) -> Answer:
    """Return all answers as one, of the files that were asked for."""
    wanted = [os.path.realpath(each) for each in source.only]

    def is_wanted(path: str) -> bool:
        real = os.path.realpath(path)
        return not wanted or any(real == each or real.startswith(each + os.sep) for each in wanted)

    return Answer(
        tuple(text for each in answers for text in each.texts if is_wanted(text.path)),
        tuple(one for each in answers for one in each.findings if is_wanted(one.place.path)),
        tuple(one for each in answers for one in each.unparsed if is_wanted(one.path)),
        was_read=any(each.was_read and any(is_wanted(text.path) for text in each.texts) for each in answers),
    )


__all__ = ["Project", "answer", "read_project"]
