"""The shape of `reslice.yml` as pydantic models: its keys, what stands under each, and the defaults.

The published JSON Schema, which editors use, is generated from these models. What one value alone cannot show, such as
a measure that is also grain, is in `contract_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from reslice import contract_values as values
from reslice.contract import Action, Method
from reslice.contract_yaml import KeyPath


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Grain(_Keys):
    """One column of the target key."""

    column: values.Text
    nulls: values.Nulls = values.NullsWord.REFUSE


class Slice(_Keys):
    """The grain column that decides which slice a row belongs to."""

    column: values.Text
    unit: values.SliceUnit
    timezone: values.TimeZone = "UTC"


class Measure(_Keys):
    """What is known of a measure. `scale` is for floats: the digits behind the point that count."""

    min: values.Number | None = None
    nulls: values.Nulls = values.NullsWord.REFUSE
    scale: values.Scale | None = None


class Controls(_Keys):
    """An independent figure of the source, per slice, that the target must match."""

    source: values.Text
    match: Annotated[dict[str, values.Text], Field(min_length=1)]


class Reader(_Keys):
    """What a reader of the target reports per slice."""

    query: values.Text
    match: Annotated[dict[str, values.Text], Field(min_length=1)]


class Guards(_Keys):
    """The rules that stop a run until a person consents."""

    empty_slice: values.StopReportOrAllow = Action.STOP
    total_change: values.TotalChange = Field(default=Decimal("0.5"), json_schema_extra={"default": "50%"})
    removed_groups: values.StopReportOrAllow = Action.REPORT
    restored: values.StopOrAllow = Action.STOP
    closed_through: values.Closed | None = None
    max_slices: values.SliceLimit = 3660


class Ledger(_Keys):
    """Where the ledger is, in the target's own database, and for how many days replaced rows are kept."""

    # `schema` would hide a method of pydantic's BaseModel.
    schema_name: values.Text = Field(default="reslice", alias="schema")
    keep_days: values.KeepDays = 90


class Timeouts(_Keys):
    """How long to wait: for a run before ours, for a table lock, for one statement, for a silent client."""

    wait: values.WaitTime = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10m"})
    lock: values.LockTime = Field(default=timedelta(seconds=5), json_schema_extra={"default": "5s"})
    statement: values.StatementTime = Field(default=None, json_schema_extra={"default": "none"})
    idle: values.LockTime = Field(default=timedelta(seconds=30), json_schema_extra={"default": "30s"})


def _with_column(value: object) -> object:
    return value if isinstance(value, Mapping) else {"column": value}


def _by_name(value: object) -> object:
    """Return measures as a mapping; a plain list of names has no options."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value)
    return value


def _options(value: object) -> object:
    return {} if value is None else value


GrainEntry = Annotated[Grain, BeforeValidator(_with_column)]
MeasureEntry = Annotated[Measure, BeforeValidator(_options)]


class Target(_Keys):
    """The declaration of one target."""

    table: values.Text
    source: values.Text
    grain: Annotated[list[GrainEntry], Field(min_length=1)]
    slice: Slice
    measures: Annotated[dict[str, MeasureEntry], Field(min_length=1), BeforeValidator(_by_name)]
    stamps: dict[str, values.FilledBy] = {}
    controls: Controls | None = None
    method: values.PublishMethod = Method.REPLACE_SLICE
    guards: Guards = Field(default_factory=lambda: Guards())
    affected: values.Text | None = None
    downstream: dict[str, Reader] = {}
    ledger: Ledger = Field(default_factory=lambda: Ledger())
    timeouts: Timeouts = Field(default_factory=lambda: Timeouts())


class File(_Keys):
    """The whole of `reslice.yml`."""

    version: values.Version
    connection: values.Text
    targets: Annotated[dict[str, Target], Field(min_length=1)]


_MODELS: dict[tuple[str, ...], type[_Keys]] = {
    (): File,
    ("targets", "*"): Target,
    ("targets", "*", "grain", "*"): Grain,
    ("targets", "*", "slice"): Slice,
    ("targets", "*", "measures", "*"): Measure,
    ("targets", "*", "controls"): Controls,
    ("targets", "*", "guards"): Guards,
    ("targets", "*", "downstream", "*"): Reader,
    ("targets", "*", "ledger"): Ledger,
    ("targets", "*", "timeouts"): Timeouts,
}
"""The model of each mapping with fixed keys; a star stands for a name or a position."""


def keys_at(path: KeyPath) -> tuple[str, ...]:
    """Return the keys that a mapping at `path` may have; none where any name may stand."""
    for pattern, model in _MODELS.items():
        if len(pattern) == len(path) and all(ours in ("*", theirs) for ours, theirs in zip(pattern, path, strict=True)):
            return tuple(field.alias or name for name, field in model.model_fields.items())
    return ()


def mistakes(error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
    """Yield each mistake that pydantic found, with the keys that lead to it, in our words."""
    for found in error.errors(include_url=False):
        path: KeyPath = found["loc"]
        kind, value = found["type"], found["input"]
        if kind == "extra_forbidden":
            yield path, f"unknown key{values.near(path[-1], keys_at(path[:-1]))}"
        elif kind == "missing":
            yield path, "this key is required and missing"
        elif kind in ("model_type", "dict_type"):
            yield path, f"expected a mapping, found {values.shown(value)}"
        elif kind == "list_type":
            hint = f"; did you mean [{value}]?" if isinstance(value, str) and value.isidentifier() else ""
            yield path, f"expected a list, found {values.shown(value)}{hint}"
        elif kind == "too_short":
            yield path, "expected at least one entry, found none"
        else:
            yield path, found["msg"]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `reslice.yml`, with the short forms that the models see spelt out."""
    schema = _without_null(File.model_json_schema())
    name = {"type": "string", "minLength": 1}
    keys = schema["$defs"]["Target"]["properties"]
    keys["grain"]["items"] = {"anyOf": [name, {"$ref": "#/$defs/Grain"}]}
    options = {"anyOf": [{"$ref": "#/$defs/Measure"}, {"type": "null"}]}
    by_name = {"type": "object", "minProperties": 1, "additionalProperties": options}
    keys["measures"] = {"anyOf": [by_name, {"type": "array", "minItems": 1, "items": name}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "reslice.yml"}


def _without_null(schema: Any) -> Any:
    """Return a schema without pydantic's null alternatives and titles: a key without a value is a mistake."""
    if isinstance(schema, list):
        return [_without_null(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(each) for key, each in schema.items() if key != "title" or not isinstance(each, str)}
    if "default" in kept and kept["default"] is None:
        del kept["default"]
    alternatives = [each for each in kept.get("anyOf", []) if each != {"type": "null"}]
    if len(alternatives) == 1:
        del kept["anyOf"]
        kept |= alternatives[0]
    return kept
