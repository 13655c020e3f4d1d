"""prove: run anybody's command twice in a sandbox, and look.

`prove_table` proves a command on a table that no contract names; `TargetHandle.prove` on one that has a contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reslice.prove.values import Proof

__all__ = ["prove_table"]


def prove_table(
    connection: str,
    table: str,
    grain: Sequence[str],
    command: Sequence[str] = (),
    **options: Any,
) -> Proof:
    """Run a command twice in a copy of a database, and return whether the table is the same both times.

    `connection` is a URL. `slice_column` with `range`, and `ignore`, say more of the table; any other option is one of
    `Task`, or `sql` and `parameters` in place of a command. No source is known: that takes a contract. Raises as
    `TargetHandle.prove`.
    """
    from reslice.prove import asked
    from reslice.prove.proving import Proving

    words = (options.pop("slice_column", None), options.pop("range", None), options.pop("ignore", ()))
    subject = asked.table_subject(table, grain, *words)
    return Proving(asked.connection_of(connection), subject, asked.task_of(command, **options)).prove()
