"""The part of SARIF 2.1.0 that an audit uses, written from the specification: no property beside these is known.

Section numbers are those of the OASIS standard. What an audit gives was checked with the full schema as well.
"""

from __future__ import annotations

from typing import Any


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 1}
_MESSAGE = _object(["text"], text=_TEXT, markdown=_TEXT)  # 3.11, 3.12
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_ARTIFACT = _object(  # 3.4
    ["uri"], uri={"type": "string", "pattern": "^[A-Za-z0-9_.~!$&'()*+,;=:@/%-]+$"}, uriBaseId={"const": "%SRCROOT%"}
)
_REGION = _object(  # 3.30
    ["startLine"],
    startLine=_NUMBER,
    startColumn=_NUMBER,
    endLine=_NUMBER,
    endColumn=_NUMBER,
    snippet=_object(["text"], text=_TEXT),
)
_LOCATION = _object(  # 3.28
    ["physicalLocation"],
    physicalLocation=_object(["artifactLocation"], artifactLocation=_ARTIFACT, region=_REGION),
)
_LOCATIONS = {"type": "array", "items": _LOCATION, "minItems": 1}
_RULE = _object(  # 3.49
    ["id"],
    id=_TEXT,
    shortDescription=_MESSAGE,
    fullDescription=_MESSAGE,
    help=_MESSAGE,
    defaultConfiguration=_object([], level=_LEVEL),
)
_NOTIFICATION = _object(["message"], message=_MESSAGE, level=_LEVEL, locations=_LOCATIONS)  # 3.58
_RESULT = _object(  # 3.27
    ["message", "ruleId", "ruleIndex", "locations", "level"],
    message=_MESSAGE,
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=_LEVEL,
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    locations=_LOCATIONS,
    suppressions={  # 3.35
        "type": "array",
        "items": _object(["kind"], kind={"enum": ["inSource", "external"]}, justification=_TEXT),
    },
)
_RUN = _object(  # 3.14
    ["tool", "results"],
    tool=_object(
        ["driver"],
        driver=_object(
            ["name"], name=_TEXT, semanticVersion=_TEXT, rules={"type": "array", "items": _RULE, "uniqueItems": True}
        ),
    ),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations={
        "type": "array",
        "items": _object(  # 3.20
            ["executionSuccessful"],
            executionSuccessful={"type": "boolean"},
            exitCode={"type": "integer"},
            toolExecutionNotifications={"type": "array", "items": _NOTIFICATION},
        ),
    },
    results={"type": "array", "items": _RESULT},
)
SHAPE = _object(
    ["version", "runs"], **{"$schema": _TEXT}, version={"const": "2.1.0"}, runs={"type": "array", "items": _RUN}
)
