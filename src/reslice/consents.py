"""Consents: what a person lets a run do in spite of a guard, read from `GUARD` or `GUARD=SLICE` and a reason."""

from __future__ import annotations

import re
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
        words = f"{guard} is no guard"
        raise _misused(contract, scope, f"--allow {text}", f"one of {', '.join(GUARDS)}", words, [])
    if found["slices"] is None:
        if guard != "empty_slice":
            return Consent(guard)
        asked = "the slice that may become empty, by name: --allow empty_slice=SLICE"
        raise _misused(contract, scope, f"--allow {text}", asked, "no slice is named", [])
    named = ranges.parse(found["slices"], contract.slice)
    return Consent(guard, tuple(named.label(moment) for moment in named.slices()))


def _misused(contract: Contract, scope: Scope, about: str, asked: str, found: str, options: Sequence[str]) -> Misused:
    after = command("run", contract.name, scope, *options)
    return Misused(about, [Failure("usage", asked, (found,), after)], unchanged="nothing was read or written")
