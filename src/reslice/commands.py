"""Commands as a user pastes them: the last line of an answer, and the way on in every refusal."""

from __future__ import annotations

import shlex

from reslice.ranges import Scope


def command(verb: str, target: str, scope: Scope, *options: str) -> str:
    """Return `reslice VERB TARGET RANGE` for the slices of `scope`, quoted for a shell where it has to be."""
    return " ".join(["reslice", verb, shlex.quote(target), shlex.quote(scope.text), *options])


def restore_command(run_id: str, scope: Scope, *options: str) -> str:
    """Return `reslice restore RUN RANGE` for the slices of `scope`."""
    return " ".join(["reslice restore", run_id, shlex.quote(scope.text), *options])
