"""The tables of the reference pages, made from the code: contract keys, commands, error kinds, ledger, API, JSON.

Each entry of `TABLES` returns Markdown. Meanings that the code does not hold stand in `meanings`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click
from docs.meanings import CONTRACT_KEYS, EXIT_CODES, JSON_FIELDS, KINDS_NEXT, METHODS, PROVE_FIELDS, RANGE_FORMS

import reslice
from reslice import cli, contract_schema, ledger, report_init, report_json, report_prove_json
from reslice.audit.rule import Rule, rules
from reslice.engines.duckdb import DuckDB
from reslice.engines.postgres import Postgres
from reslice.errors import KINDS, Failure, Misused, ResliceError
from reslice.project import Project
from reslice.target_handle import TargetHandle


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar inside a cell is escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )


def agreed(meanings: Mapping[Any, Any], found: Iterable[Any], what: str) -> None:
    """Raise AssertionError unless exactly what the code has is explained."""
    names = set(found)
    missing, gone = sorted(names - set(meanings)), sorted(set(meanings) - names)
    assert not missing, f"{what} without a meaning in docs/meanings.py: {missing}"
    assert not gone, f"{what} that the code does not have: {gone}"


# The contract.


def contract_keys() -> dict[str, Mapping[str, Any]]:
    """Return every key of the contract file, dotted, with its JSON Schema and whether it is `required`."""
    schema = contract_schema.json_schema()
    return dict(_keys(schema, schema["$defs"], ""))


def _keys(part: Mapping[str, Any], parts: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in part.get("properties", {}).items():
        key = f"{path}.{name}".removeprefix(".")
        yield key, {**value, "required": name in part.get("required", ())}
        yield from _below(value, parts, key)


def _below(value: Mapping[str, Any], parts: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the keys below a value: of the mapping itself, of each entry by NAME, or of each item of a list."""
    for each in (value, *value.get("anyOf", ())):
        if "$ref" in each:
            yield from _keys(parts[each["$ref"].rpartition("/")[2]], parts, key)
        if isinstance(each.get("additionalProperties"), dict):
            yield from _below(each["additionalProperties"], parts, f"{key}.NAME")
        if isinstance(each.get("items"), dict):
            yield from _below(each["items"], parts, f"{key}[]")


_PATTERNS = {
    "ms|s|m|h": "a time: `500ms`, `5s`, `10m`, `1h`",
    "days? ago": "`yesterday`, `N days ago`, a date",
    "%": "a percentage, or `allow`",
}
"""What a pattern of the schema means to a reader, by a piece of it."""


def _values(part: Mapping[str, Any]) -> str:
    """Say in a few words what may stand there."""
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    pattern = part.get("pattern", "")
    for piece, text in _PATTERNS.items():
        if piece in pattern:
            return text + (", or `none`" if "none" in pattern else "")
    if part.get("type") == "integer":
        return f"a whole number, {part['minimum']} to {part['maximum']}"
    if part.get("type") == "array" or "items" in part:
        return "a list"
    if "anyOf" in part:
        return "a mapping, or a list"
    return {"string": "text", "number": "a number"}.get(part.get("type", ""), "a mapping")


def _default(part: Mapping[str, Any]) -> str:
    if part["required"]:
        return "**required**"
    default = part.get("default")
    return f"`{default}`" if isinstance(default, str | int) else "none"


def contract_table() -> str:
    """Return every key of the contract file."""
    keys = contract_keys()
    agreed(CONTRACT_KEYS, keys, "contract keys")
    rows = [
        (f"`{key.removeprefix('targets.NAME.')}`", _values(part), _default(part), CONTRACT_KEYS[key])
        for key, part in keys.items()
    ]
    return markdown(("key", "value", "default", "meaning"), rows)


def methods_table() -> str:
    """Return what each method does, and whether each engine has it; where one has not, why."""
    engines = (DuckDB, Postgres)
    for engine in engines:
        agreed(METHODS, [str(method) for method in engine.methods], f"methods of {engine.name}")
    rows = []
    for method in DuckDB.methods:
        able = [engine.methods[method] for engine in engines]
        cells = [f"{each.support}: {each.reason}" if each.reason else str(each.support) for each in able]
        rows.append((f"`{method}`", METHODS[str(method)], *cells))
    return markdown(("method", "", "on DuckDB", "on PostgreSQL"), rows)


# Commands.


def commands() -> dict[str, click.Command]:
    """Return every command, by name."""
    return dict(cli.root.commands)


def command_table(name: str) -> str:
    """Return the usage of a command, its options and what each does."""
    command = cli.root if name == "reslice" else commands()[name]
    rows = []
    for option in command.params:
        if isinstance(option, click.Option):
            value = "" if option.is_flag else f" {option.metavar or ''}" if option.metavar else " N"
            default = f" Default: {option.default}." if option.show_default else ""
            rows.append((f"`{', '.join(option.opts)}{value}`", (option.help or "") + default))
    arguments = [each.human_readable_name.upper() for each in command.params if isinstance(each, click.Argument)]
    shown = " ".join(argument if name in ("show", "audit") else f"[{argument}]" for argument in arguments)
    usage = " ".join(filter(None, ("reslice" if name == "reslice" else f"reslice {name}", shown, "[OPTIONS]")))
    return f"`{usage}`\n\n{markdown(('option', ''), rows)}"


def ranges_table() -> str:
    """Return the forms of a RANGE."""
    return markdown(("RANGE", "means"), ((f"`{form}`", meaning) for form, meaning in RANGE_FORMS))


def json_fields() -> dict[str, list[str]]:
    """Return each field of the JSON answers, with the commands that have it."""
    error = Misused("", [Failure("usage", "", ("",), "")], unchanged="")
    answers = {name: report_json.error_json(name, error) for name in ("plan", "run", "verify", "status", "restore")}
    answers["history"] = report_json.history_json(())
    answers["show"] = dict.fromkeys((*report_json.error_json("show", error), "groups_left_out", "sql"))
    answers["init"] = report_init.init_json(None)
    answers["versions"] = report_json.error_json("versions", error)
    answers["doctor"] = report_json.error_json("doctor", error)
    answers["audit"] = report_json.error_json("audit", error)
    answers["rule"] = report_json.error_json("rule", error)
    answers["studio"] = report_json.error_json("studio", error)
    fields: dict[str, list[str]] = {}
    for command, answer in answers.items():
        for field in answer:
            fields.setdefault(field, []).append(command)
    fields["sql"].append("plan --sql")
    return fields


def json_table() -> str:
    """Return every field of the JSON answers."""
    fields = json_fields()
    agreed(JSON_FIELDS, fields, "JSON fields")
    every = {command for of in fields.values() for command in of} - {"plan --sql"}
    rows = [
        (f"`{field}`", "all" if set(of) == every else ", ".join(of), JSON_FIELDS[field]) for field, of in fields.items()
    ]
    return markdown(("field", "in", "meaning"), rows)


# Rules.


def rules_table() -> str:
    """Return the codes and titles of what audit looks for."""
    rows = [(f"[`{rule.code}`](#{rule.code.lower()})", rule.title) for rule in rules().values()]
    return markdown(("code", "what is found"), rows)


def rule_pages() -> str:
    """Return the page of every rule."""
    return "\n\n".join(map(_rule_page, rules().values()))


def _rule_page(rule: Rule) -> str:
    parts = [f"### {rule.code}", f"**{rule.title}.**", rule.why]
    for example in rule.examples:
        language = "python" if example.kind.startswith("python") else "sql"
        text = example.text.rstrip("\n")
        parts.append(f"{'Bad' if example.is_bad else 'Good'} ({example.kind}):\n\n```{language}\n{text}\n```")
    return "\n\n".join([*parts, f"What to do: {rule.help}."])


def prove_json_table() -> str:
    """Return every field of the JSON of prove, which is an answer of its own."""
    fields = [*report_prove_json.FIELDS, "error", "next", "exit_code"]
    agreed(PROVE_FIELDS, fields, "JSON fields of prove")
    return markdown(("field", "meaning"), [(f"`{name}`", PROVE_FIELDS[name]) for name in fields])


# Errors and exit codes.


def error_classes() -> list[type[ResliceError]]:
    """Return the classes of error, by exit code."""
    return sorted(dict.fromkeys(kind.error for kind in KINDS.values()), key=lambda error: error.exit_code)


def errors_table(word: str) -> str:
    """Return the kinds of one class, with what each means and what to do."""
    agreed(KINDS_NEXT, KINDS, "error kinds")
    rows = [
        (f"`{name}`", kind.meaning, KINDS_NEXT[name]) for name, kind in KINDS.items() if kind.error.__name__ == word
    ]
    return markdown(("kind", "meaning", "what to do"), rows)


def classes_table() -> str:
    """Return the classes of error."""
    rows = [
        (f"`{error.__name__}`", f"`{error.word}[…]`", f"`{error.exit_code}`", (error.__doc__ or "").split("\n")[0])
        for error in error_classes()
    ]
    return markdown(("class", "said as", "exit", "meaning"), rows)


def exit_codes_table() -> str:
    """Return every exit code."""
    agreed(EXIT_CODES, {0, 1, 129, 143, *(error.exit_code for error in error_classes())}, "exit codes")
    rows = [(f"`{code}`", *words) for code, words in EXIT_CODES.items()]
    return markdown(("exit", "meaning", "target", "scheduler"), rows)


# The ledger and the API.


def ledger_table(name: str) -> str:
    """Return the columns of one ledger table."""
    table = next(each for each in ledger.TABLES if each.name == name)
    rows = [(f"`{each.name}`", each.type, each.meaning) for each in table.columns]
    return (
        f"{table.meaning[0].upper()}{table.meaning[1:]}. Key: {', '.join(f'`{key}`' for key in table.key)}.\n\n"
        + markdown(("column", "type", "meaning"), rows)
    )


def names_table() -> str:
    """Return the public names of the package."""
    rows = [(f"`reslice.{name}`", _first_sentence(getattr(reslice, name))) for name in reslice.__all__]
    return markdown(("name", ""), rows)


def members_table(owner: type) -> str:
    """Return the public methods and properties of a class, as they are called."""
    rows = []
    for name, member in vars(owner).items():
        if name.startswith("_") or name == "engine":
            continue
        if isinstance(member, property):
            rows.append((f"`{name}`", _first_sentence(member)))
        elif inspect.isfunction(member):
            rows.append((f"`{name}({_parameters(member)})`", _first_sentence(member)))
    return markdown(("", ""), rows)


def _parameters(member: Callable[..., Any]) -> str:
    parts, is_keyword = [], False
    for parameter in list(inspect.signature(member).parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        parts.append(f"{stars}{parameter.name}{default}")
    return ", ".join(parts)


def _first_sentence(thing: Any) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.]) ", text)[0]


TABLES: dict[str, Callable[[], str]] = {
    "contract": contract_table,
    "methods": methods_table,
    "ranges": ranges_table,
    "json": json_table,
    "json prove": prove_json_table,
    "rules": rules_table,
    "rule pages": rule_pages,
    "classes": classes_table,
    "exit codes": exit_codes_table,
    "names": names_table,
    "project": partial(members_table, Project),
    "target": partial(members_table, TargetHandle),
    **{f"command {name}": partial(command_table, name) for name in ("reslice", *commands())},
    **{f"errors {each.__name__.lower()}": partial(errors_table, each.__name__) for each in error_classes()},
    **{f"ledger {each.name}": partial(ledger_table, each.name) for each in ledger.TABLES},
}
"""Every table a page can have, by the name in its marker."""
