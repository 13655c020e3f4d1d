"""What is said when reslice itself fails: that it is a bug, what is known of the target, and where the details are."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping

from reslice import __version__
from reslice.errors import Failure, OutcomeUnknown

_MASK = "***"
_IN_URL = re.compile(r"(?<=://)[^/@\s:]*:[^/\s]*(?=@)")
_NAMED = re.compile(
    r"""(?ix) (?P<name> \b[\w-]* (?:password|passwd|pwd|secret|token|api_?key|access_?key) ['"]? \s*[=:]\s* )
        (?: '[^']*' | "[^"]*" | [^\s&;,)]+ )"""
)
_SECRET_NAME = re.compile(r"(?i)pass|.*_pwd|secret|token|key|credential|url|dsn")
_SECRET_LENGTH_MIN = 6


def internal_error(error: Exception) -> OutcomeUnknown:
    """Return a failure of reslice itself as an error whose outcome is unknown; the details are in a file."""
    found = f"{type(error).__name__} in {_where(error)}"
    failure = Failure(
        "internal",
        "reslice does what the command says, or says why not",
        (f"a bug in reslice: {found}", f"details: {_write_details(error)}"),
        "reslice history",
    )
    return OutcomeUnknown("reslice", [failure], unchanged="not known: look with  reslice history")


def masked(text: str, environment: Mapping[str, str]) -> str:
    """Return the text without what could be a secret: passwords of URLs, named secrets, values of the environment."""
    names = (name for name in environment if _SECRET_NAME.search(name))
    values = {environment[name] for name in names if len(environment[name]) >= _SECRET_LENGTH_MIN}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, _MASK)
    text = _IN_URL.sub(_MASK, text)
    return _NAMED.sub(lambda found: f"{found['name']}{_MASK}", text)


def _where(error: Exception) -> str:
    """Return the file and line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else "an unknown place"


def _write_details(error: Exception) -> str:
    """Write the traceback to a file only its owner reads, and return its path; or why there is none."""
    text = "".join(traceback.format_exception(error))
    head = f"reslice {__version__}, Python {sys.version.split()[0]}, {sys.platform}\n\n"
    try:
        handle, path = tempfile.mkstemp(prefix="reslice-bug-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(head + masked(text, os.environ))
    except OSError as problem:
        return f"none, they could not be written: {problem.strerror or problem}"
    return path
