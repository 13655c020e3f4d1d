"""An audit as SARIF 2.1.0, which code scanning services read: rules, results with regions, suppressions.

A finding is an error; a note has the level note; what reading cannot decide is a result of the kind open; what could
not be read is a notification of the run, and no result.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from reslice import __version__
from reslice.audit.finding import Audited, Finding, Sort, Unparsed
from reslice.audit.rule import Rule, rules
from reslice.report_audit import exit_code

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(found: Audited) -> dict[str, Any]:
    """Return an audit as one SARIF log with one run."""
    known = [*rules().values()]
    places = {rule.code: place for place, rule in enumerate(known)}
    every = (*found.findings, *found.unknown, *found.notes)
    results = [_result(each, places[each.code], is_suppressed=False) for each in every]
    results += [_result(each, places[each.code], is_suppressed=True) for each in found.suppressed]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "reslice",
                        "semanticVersion": __version__,
                        "rules": [*map(_rule, known)],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": not found.is_blind,
                        "exitCode": exit_code(found),
                        "toolExecutionNotifications": [*map(_notification, found.unparsed)],
                    }
                ],
                "results": results,
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    examples = "\n\n".join(
        f"{'Bad' if each.is_bad else 'Good'} ({each.kind}):\n\n```\n{each.text}```" for each in rule.examples
    )
    return {
        "id": rule.code,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.why}\n\nWhat to do: {rule.help}.",
            "markdown": f"{rule.why}\n\n{examples}\n\nWhat to do: {rule.help}.",
        },
        "defaultConfiguration": {"level": "error"},
    }


def _result(finding: Finding, place: int, *, is_suppressed: bool) -> dict[str, Any]:
    at = finding.place
    region: dict[str, Any] = {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.end_line,
        "endColumn": at.end_column + 1,
    }
    if finding.lines:
        region["snippet"] = {"text": "\n".join(finding.lines)}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": place,
        "message": {"text": f"{finding.detail}. What to do: {finding.help}."},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(at.path), "region": region}}],
    }
    if finding.sort is Sort.UNKNOWN:
        result |= {"kind": "open", "level": "none"}
    else:
        result["level"] = "error" if finding.sort is Sort.FINDING else "note"
    if is_suppressed:
        reason = {"justification": finding.reason} if finding.reason else {}
        result["suppressions"] = [{"kind": "inSource"} | reason]
    return result


def _artifact(path: str) -> dict[str, Any]:
    """Return the address of a file: below the root of the sources where it is relative, else where it is."""
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(PurePath(path).as_posix().removeprefix("./"), safe="/"), "uriBaseId": "%SRCROOT%"}


def _notification(unparsed: Unparsed) -> dict[str, Any]:
    region = {"startLine": unparsed.line, "startColumn": unparsed.column}
    return {
        "level": "warning",
        "message": {"text": f"not read: {unparsed.why}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(unparsed.path), "region": region}}],
    }
