"""What a few macros that everybody has write, as far as reading a query needs it: those of dbt itself and of dbt_utils.

Each gives SQL with the same columns in it as the macro's own, in the plainest form; others are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

_GROUP_LIMIT = 500


def written(name: str, given: Sequence[object], named: dict[str, object]) -> str | None:
    """Return the SQL that a call of a macro stands for; None where that is not known."""
    owner, _, last = name.rpartition(".")
    macro = _MACROS.get(last)
    if macro is None or f"{owner}." not in ("dbt.", "dbt_utils.", "."):
        return None
    parameters, make = macro
    if len(given) > len(parameters):
        return None
    values = dict(zip(parameters, given, strict=False)) | named
    try:
        return make(values)
    except (KeyError, TypeError, ValueError):
        return None


def _group_by(values: dict[str, object]) -> str:
    count = _number(values["n"])
    return "group by " + ", ".join(str(each) for each in range(1, min(count, _GROUP_LIMIT) + 1))


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str | int):
        raise TypeError(value)
    return str(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise TypeError(value)
    return [_text(each) for each in value]


def _surrogate_key(values: dict[str, object]) -> str:
    parts = [f"coalesce(cast({each} as varchar), '')" for each in _texts(values["field_list"])]
    return f"md5(concat({', '.join(parts)}))"


def _date_trunc(values: dict[str, object]) -> str:
    return f"timestamp_trunc({_text(values['date'])}, {_text(values['datepart'])})"


def _safe_cast(values: dict[str, object]) -> str:
    return f"cast({_text(values['field'])} as {_text(values['type'])})"


_MACROS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, object]], str]]] = {
    "group_by": (("n",), _group_by),
    "generate_surrogate_key": (("field_list",), _surrogate_key),
    "surrogate_key": (("field_list",), _surrogate_key),
    "date_trunc": (("datepart", "date"), _date_trunc),
    "current_timestamp": ((), lambda _: "current_timestamp"),
    "current_timestamp_in_utc": ((), lambda _: "current_timestamp"),
    "safe_cast": (("field", "type"), _safe_cast),
    "type_string": ((), lambda _: "varchar"),
    "type_timestamp": ((), lambda _: "timestamp"),
    "type_int": ((), lambda _: "int"),
    "type_bigint": ((), lambda _: "bigint"),
    "type_numeric": ((), lambda _: "numeric"),
    "type_float": ((), lambda _: "float"),
    "type_boolean": ((), lambda _: "boolean"),
}
