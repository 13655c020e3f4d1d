"""Consents: what a person lets a run do in spite of a guard, read from `GUARD` or `GUARD=SLICE` and a reason."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence

from reslice import ranges
from reslice.approve import GUARDS
from reslice.commands import command
from reslice.contract import Contract
from reslice.errors import Failure, Misused
from reslice.ranges import Scope
from reslice.values import Consent

CONSENT = re.compile(r"(?P<guard>[a-z_]+)(?:=(?P<slices>.+))?")
REASON = '--reason "say why"'


def read(allow: Sequence[str], reason: str, contract: Contract, scope: Scope) -> tuple[Consent, ...]:
    """Return the consents; Misused[usage] without a reason, for a guard there is none of, or a slice left unnamed."""
    if allow and not reason.strip():
        options = [*(f"--allow {text}" for text in allow), REASON]
        raise _misused(contract, scope, "--allow", "a consent has a reason", "no --reason is given", options)
    return tuple(_consent(text, contract, scope) for text in allow)


def _consent(text: str, contract: Contract, scope: Scope) -> Consent:
    found = CONSENT.fullmatch(text)
    guard = found["guard"] if found else text
    if found is None or guard not in GUARDS:
        raise _no_guard(text, guard, contract, scope)
    if found["slices"] is None:
        if guard != "empty_slice":
            return Consent(guard)
        asked = "the slice that may become empty, by name: --allow empty_slice=SLICE"
        raise _misused(contract, scope, f"--allow {text}", asked, "no slice is named", [])
    named = ranges.parse(found["slices"], contract.slice)
    return Consent(guard, tuple(named.label(moment) for moment in named.slices()))


def _no_guard(text: str, guard: str, contract: Contract, scope: Scope) -> Misused:
    near = difflib.get_close_matches(guard, GUARDS, n=1)
    asked = f"one of {', '.join(GUARDS)}"
    if not near:
        failure = Failure("usage", asked, (f"{guard} is no guard",), f"name a guard instead of {guard}")
        return Misused(f"--allow {text}", [failure], unchanged="nothing was read or written")
    right = text.replace(guard, near[0], 1)
    found = f"{guard} is no guard; did you mean {near[0]}?"
    options = [f"--allow {shlex.quote(right)}", REASON]
    error = _misused(contract, scope, f"--allow {text}", asked, found, options)
    error.meant = (text, right)
    return error


def _misused(contract: Contract, scope: Scope, about: str, asked: str, found: str, options: Sequence[str]) -> Misused:
    after = command("run", contract.name, scope, *options)
    return Misused(about, [Failure("usage", asked, (found,), after)], unchanged="nothing was read or written")
