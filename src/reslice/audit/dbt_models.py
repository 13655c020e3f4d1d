"""The models of a dbt project, each with its config by dbt's own order of who goes before whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from reslice.audit.dbt_model import Model, Setting, Upstream
from reslice.audit.dbt_project import Project
from reslice.audit.dbt_yaml import mapping, maps, settled
from reslice.audit.files import text_of
from reslice.audit.finding import Unparsed
from reslice.audit.known import NOT_ENFORCED, Table
from reslice.audit.text import Text
from reslice.reading.jinja import UNKNOWN, Reference, known, plain
from reslice.reading.rendered import Configured, Rendered, rendered

_BEFORE = re.compile(r"(?:\s|--[^\n]*\n|\{#.*?#\}|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Models:
    """What was found in the folders of models: those in SQL, and the files that could not be opened."""

    models: list[Model] = field(default_factory=list)
    python: list[Text] = field(default_factory=list)
    unparsed: list[Unparsed] = field(default_factory=list)


def models_of(project: Project) -> Models:
    """Return the models of a project; what each reads is told with the column of its time."""
    found = Models()
    templates: list[tuple[Model, Rendered]] = []
    for folder in project.model_folders():
        for path in sorted([*folder.rglob("*.sql"), *folder.rglob("*.py")]):
            text = text_of(path)
            if isinstance(text, Unparsed):
                found.unparsed.append(text)
            elif path.suffix == ".py":
                found.python.append(text)
            else:
                template = rendered(text.text, variables=project.variables)
                model = _model(project, path, path.relative_to(folder), text, template)
                found.models.append(model)
                templates.append((model, template))
    by_name = {model.name: model for model in found.models}
    own_keys = project.own_keys()
    for model, template in templates:
        model.own_keys = own_keys
        model.upstream = tuple(_upstream(project, by_name, template, model.text.text))
    return found


def _model(project: Project, path: Path, relative: Path, text: Text, template: Rendered) -> Model:
    name = path.stem
    properties = project.properties.get(name, {})
    config = {key: Setting(value) for key, value in project.project_config(relative).items()}
    config |= _properties_config(properties, project.variables)
    manifest = project.manifest.get(path.relative_to(project.folder).as_posix(), {})
    config |= {key: Setting(value) for key, value in mapping(manifest.get("config")).items() if value is not None}
    is_hidden = False
    for each in template.configured:
        is_hidden = is_hidden or (each.is_hidden and not manifest)
        for key, setting in _own(text.text, each):
            if known(setting.value) or key not in mapping(manifest.get("config")):
                config[key] = setting
    span = _config_span(text.text, template.configured)
    declared = _declared(name, properties, project.adapter or "")
    alias = config.get("alias", Setting(name)).value
    table = alias if isinstance(alias, str) and alias else name
    declared.name = table.lower()
    return Model(name, text, project.adapter, config, is_hidden, span, declared=declared)


def _properties_config(properties: Mapping[str, Any], variables: Mapping[str, object]) -> dict[str, Setting]:
    return {str(key): Setting(settled(each, variables)) for key, each in mapping(properties.get("config")).items()}


def _own(text: str, configured: Configured) -> Iterator[tuple[str, Setting]]:
    """Yield what a call of `config` says, each with where the key stands."""
    start, end = configured.span
    for key, value in configured.values.items():
        found = re.compile(rf"(?<!\w)['\"]?{re.escape(key)}['\"]?\s*[=:]").search(text, start, end)
        span = None
        if found is not None:
            span = (found.start(), min(end, _line_end(text, found.end())))
        given = plain(value)
        yield key, Setting(given if not isinstance(given, Reference) else UNKNOWN, span)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return at + len(text[at:end].rstrip().rstrip(",)}").rstrip())


def _config_span(text: str, configured: list[Configured]) -> tuple[int, int]:
    """Return where a model is configured: the first line of its last `config`; without one, its first word."""
    if configured:
        start, end = configured[-1].span
        start = text.find("config", start, end)
        return start, min(end, start + len("config"))
    before = _BEFORE.match(text)
    start = min(before.end() if before is not None else 0, max(0, len(text) - 1))
    word = _WORD.match(text, start)
    return start, word.end() if word is not None else min(len(text), start + 1)


def _upstream(project: Project, models: Mapping[str, Model], template: Rendered, text: str) -> Iterator[Upstream]:
    seen = set()
    for span, reference in template.references:
        if reference in seen:
            continue
        seen.add(reference)
        is_whole = ".render(" in text[span[0] : span[1]]
        yield Upstream(reference, span, _event_time(project, models, reference), is_whole)


def _event_time(project: Project, models: Mapping[str, Model], reference: Reference) -> str | None:
    if reference.kind == "source":
        if len(reference.names) != 2:
            return None
        declared = project.event_times.get((reference.names[0], reference.names[1]))
        if declared is None and project.is_partial():
            return None
        return declared if declared is not None else _text(project.source_config(reference.names).get("event_time"))
    model = models.get(reference.names[-1])
    if model is not None and len(reference.names) == 1:
        value = model.get("event_time", "")
        return None if value is UNKNOWN else _text(value)
    has_packages = any((project.folder / each).is_file() for each in ("packages.yml", "dependencies.yml"))
    return None if has_packages or model is not None else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _declared(name: str, properties: Mapping[str, Any], adapter: str) -> Table:
    """Return what the properties of a model declare of its columns: types, keys the database enforces, and not null.

    A test of not null counts as well: it is watched.
    """
    table = Table(name.lower())
    is_enforced = bool(mapping(mapping(properties.get("config")).get("contract")).get("enforced"))
    for column in maps(properties.get("columns")):
        own = str(column.get("name", "")).lower()
        _typed(table, own, column.get("data_type"), adapter)
        tests = [*_listed(column.get("tests")), *_listed(column.get("data_tests"))]
        if any(each == "not_null" or (isinstance(each, dict) and "not_null" in each) for each in tests):
            table.not_null.add(own)
        for constraint in maps(column.get("constraints")) if is_enforced else ():
            _constrained(table, (own,), str(constraint.get("type", "")), adapter)
    for constraint in maps(properties.get("constraints")) if is_enforced else ():
        columns = tuple(str(each).lower() for each in _listed(constraint.get("columns")))
        _constrained(table, columns, str(constraint.get("type", "")), adapter)
    return table


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _typed(table: Table, column: str, kind: object, adapter: str) -> None:
    if isinstance(kind, str):
        try:
            table.types[column] = exp.DataType.build(kind, dialect=None)
        except (SqlglotError, ValueError):
            return


def _constrained(table: Table, columns: tuple[str, ...], kind: str, adapter: str) -> None:
    if kind == "not_null":
        table.not_null.update(columns)
    elif kind in ("primary_key", "unique") and columns and adapter not in NOT_ENFORCED:
        table.unique.append(columns)
        if kind == "primary_key":
            table.not_null.update(columns)
