"""prove: run anybody's command twice in a sandbox, and look.

`prove_table` is the whole of it for a table that no contract names; `TargetHandle.prove` for one that has a contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reslice.prove.values import Proof, Script, Task

__all__ = ["Proof", "task_of"]


def task_of(
    command: Sequence[str] = (),
    *,
    sql: str | Path | None = None,
    parameters: Mapping[str, str] | None = None,
    **options: Any,
) -> Task:
    """Return what is to be run: the words of a command, or a SQL file with its parameters; options as in `Task`."""
    script = None if sql is None else Script(Path(sql), dict(parameters or {}))
    return Task(tuple(command), script, **options)
