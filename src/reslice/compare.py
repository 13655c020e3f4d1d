"""Compare: the checked rows against the base, slice by slice. Only temporary tables are written."""

from __future__ import annotations

from reslice.engines.base import Engine
from reslice.errors import Failure, Refused
from reslice.values import Checked, Diff


def compare(engine: Engine, checked: Checked) -> Diff:
    """Return what the staged rows would change; equal row counts and fingerprints mean unchanged, never an empty join.

    Raises Refused[slice_off_unit] when the target holds values in the range that belong to no slice.
    """
    try:
        return engine.compare(checked.staged)
    except ValueError as error:
        contract = checked.staged.contract
        found = (
            f"{contract.table} holds a {contract.slice.column} in the range that is no {contract.slice.unit}: {error}"
        )
        asked = contract.quote("slice", f"unit: {contract.slice.unit}")
        failure = Failure("slice_off_unit", asked, (found,), f"correct or delete those rows of {contract.table}")
        raise Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was") from error
