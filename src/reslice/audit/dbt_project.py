"""A dbt project as its files declare it: names, defaults, what is said of each model and source, and where models are.

What is said of a model in several places goes by dbt's own order: the model's file before the properties, these before
`dbt_project.yml`, and there the innermost folder before those around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reslice.audit.dbt_adapter import DIALECTS, adapter_of
from reslice.audit.dbt_yaml import loaded, mapping, maps, settled
from reslice.audit.files import text_of
from reslice.audit.finding import Unparsed
from reslice.audit.text import Text

_PROPERTIES = re.compile(r"(?m)^(?:models|sources|snapshots|version)\s*:")
_SAYS_SOMETHING = re.compile(r"config|event_time|not_null|constraints|data_type")
_ASKED_KEY = re.compile(r"config\s*(?:\.\s*(?:get|require|meta_get)\s*\(\s*|\[\s*)['\"](\w+)['\"]")
_MANIFEST_MAX = 200 << 20


@dataclass(slots=True)
class Project:
    """What the YAML files and the manifest of a project say.

    `properties` are of each model by name; `event_times` of each source by its names, an empty text where it has none.
    `manifest` holds the nodes of `target/manifest.json` by the path of their file.
    """

    folder: Path
    name: str
    said: Mapping[str, Any]
    variables: Mapping[str, object]
    adapter: str | None
    texts: dict[str, Text] = field(default_factory=dict)
    unparsed: list[Unparsed] = field(default_factory=list)
    properties: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    event_times: dict[tuple[str, str], str] = field(default_factory=dict)
    manifest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def model_folders(self) -> list[Path]:
        """Return the folders in which models are."""
        return self._folders("model-paths", "source-paths", default=["models"])

    def is_partial(self) -> bool:
        """Whether models or what is said of them lie outside the project's folder, where nothing is read."""
        named = self.said.get("model-paths")
        inside = [
            _is_within(self.folder / str(each), self.folder) for each in (named if isinstance(named, list) else [])
        ]
        return not all(inside)

    def snapshot_folders(self) -> list[Path]:
        """Return the folders in which snapshots are."""
        return self._folders("snapshot-paths", default=["snapshots"])

    def own_keys(self) -> frozenset[str]:
        """Return the keys of a config that the project's own macros ask for."""
        found: set[str] = set()
        for folder in self._folders("macro-paths", default=["macros"]):
            for path in sorted(folder.rglob("*.sql")):
                text = text_of(path)
                found |= set(_ASKED_KEY.findall(text.text)) if isinstance(text, Text) else set()
        return frozenset(found)

    def _folders(self, *keys: str, default: list[str]) -> list[Path]:
        named = next((self.said[key] for key in keys if isinstance(self.said.get(key), list)), default)
        inside = [self.folder / str(each) for each in named]
        return [each for each in inside if each.is_dir() and _is_within(each, self.folder)]

    def project_config(self, relative: Path) -> dict[str, object]:
        """Return what `dbt_project.yml` says of a model, by its path within its folder of models."""
        return self._walked(mapping(self.said.get("models")), (self.name, *relative.with_suffix("").parts))

    def source_config(self, names: tuple[str, ...]) -> dict[str, object]:
        """Return what `dbt_project.yml` says of a source."""
        return self._walked(mapping(self.said.get("sources")), (self.name, *names))

    def _walked(self, tree: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, object]:
        found: dict[str, object] = {}
        for word in ("", *words):
            tree = mapping(tree.get(word)) if word else tree
            for key, value in tree.items():
                if str(key).startswith("+"):
                    found[str(key)[1:]] = settled(value, self.variables)
                elif not isinstance(value, dict):
                    found[str(key)] = settled(value, self.variables)
        return found


def read_project(folder: Path, dialect: str | None) -> Project:
    """Return what the files of a project say; what cannot be read of them is told."""
    text, said, failed = loaded(folder / "dbt_project.yml")
    manifest = _manifest(folder / "target" / "manifest.json")
    variables = _variables(mapping(said.get("vars")), str(said.get("name", "")))
    adapter = mapping(manifest.get("metadata")).get("adapter_type")
    if dialect is not None or adapter not in DIALECTS:
        adapter = adapter_of(folder, said, dialect)
    project = Project(folder, str(said.get("name", "")), said, variables, adapter)
    if text is not None:
        project.texts[text.path] = text
    project.unparsed += [failed] if failed is not None else []
    project.manifest = {
        str(node["original_file_path"]): node
        for node in mapping(manifest.get("nodes")).values()
        if isinstance(node, dict) and node.get("resource_type") == "model" and "original_file_path" in node
    }
    for each in mapping(manifest.get("sources")).values():
        event_time = mapping(mapping(each).get("config")).get("event_time")
        names = (str(mapping(each).get("source_name")), str(mapping(each).get("name")))
        project.event_times[names] = str(event_time or "")
    for each in project.model_folders():
        for path in sorted([*each.rglob("*.yml"), *each.rglob("*.yaml")]):
            _read_properties(project, path)
    return project


def _variables(said: Mapping[str, Any], name: str) -> dict[str, object]:
    """Return the defaults of the project's vars: those for all, and those under its own name."""
    found = {str(key): value for key, value in said.items() if not isinstance(value, dict)}
    return found | {str(key): value for key, value in mapping(said.get(name)).items()}


def _manifest(path: Path) -> Mapping[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > _MANIFEST_MAX:
            return {}
        return mapping(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def _read_properties(project: Project, path: Path) -> None:
    """Take in what a YAML file says of models and sources; files that say nothing an audit asks for are left out."""
    try:
        content = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return
    if not _PROPERTIES.search(content) or not _SAYS_SOMETHING.search(content):
        return
    text, said, failed = loaded(path)
    if text is None or failed is not None:
        project.unparsed += [failed] if failed is not None else []
        return
    project.texts[text.path] = text
    for model in maps(said.get("models")):
        project.properties[str(model.get("name"))] = model
    for names, config in _sources(said):
        own = project.source_config(names) | config
        project.event_times[names] = str(own.get("event_time") or "")


def _sources(said: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, object]]]:
    for source in maps(said.get("sources")):
        of_all = mapping(source.get("config"))
        for table in maps(source.get("tables")):
            own = {**of_all, **mapping(table.get("config"))}
            yield (str(source.get("name")), str(table.get("name"))), own


def _is_within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
