"""A range that somebody chose on the page of a target: its slices, and the commands for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reslice.commands import command, restore_command
from reslice.contract import Contract
from reslice.errors import ResliceError
from reslice.layout import placed
from reslice.ranges import Range, Scope, parse
from reslice.studio.standing import Stand, Standing
from reslice.studio.values import instant

SLICES_SHOWN = 14
_MARKED_MAX = 800


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was typed, and the range that it names; where it names none, what is wrong with it."""

    text: str
    range: Range | None = None
    error: ResliceError | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The slices that are marked in the picture."""
        if self.range is None:
            return frozenset()
        return frozenset(map(self.range.label, islice(self.range.slices(), _MARKED_MAX)))


def chosen_range(contract: Contract, first: str, last: str) -> Chosen | None:
    """Return the range from one slice to another, both included; of one that is named, that one. None for neither."""
    ends = [each for each in (first, last) if each]
    if not ends:
        return None
    text = "..".join(ends)
    try:
        return Chosen(text, parse(text, contract.slice))
    except ResliceError as error:
        return Chosen(text, error=error)


def chosen_values(chosen: Chosen, contract: Contract, found: Mapping[str, Stand], place: str) -> dict[str, Any]:
    """Return the slices of a range that was chosen, and the commands to copy; or what is wrong with the range."""
    range = chosen.range
    if range is None:
        assert chosen.error is not None, "what is no range says why"
        texts = [text for failure in chosen.error.failures for text in failure.found]
        after = chosen.error.next
        return {"range": chosen.text, "error": {"found": texts, "next": after}, "slices": [], "commands": []}
    unknown = Stand(Standing.UNKNOWN)
    stands = [(label, found.get(label, unknown)) for label in map(range.label, islice(range.slices(), SLICES_SHOWN))]
    return {
        "range": range.text,
        "words": range.words,
        "count": range.count,
        "first": range.label(range.start),
        "last": range.label(range.end),
        "error": None,
        "slices": [
            {"slice": label, "state": stand.state.value, "run": stand.run or None, "at": instant(stand.at)}
            for label, stand in stands
        ],
        "commands": _commands(range, contract, found, place),
    }


def _commands(range: Range, contract: Contract, found: Mapping[str, Stand], place: str) -> list[dict[str, str]]:
    """Return what can be done with a range, in the order in which one does it."""
    scope = Scope.of(range)
    commands = [
        ("what a run would change", command("plan", contract.name, scope)),
        ("replace what differs", command("run", contract.name, scope)),
        ("run the source twice, compare", command("verify", contract.name, scope)),
    ]
    written = _last_written(range, found)
    if written:
        commands.append((f"put back what {written} replaced", restore_command(written, scope)))
    return [{"for": words, "command": placed(text, place)} for words, text in commands]


def _last_written(range: Range, found: Mapping[str, Stand]) -> str:
    """Return the last run that wrote a slice of the range, as far as the page shows; empty when none did."""
    stands = (found.get(range.label(moment)) for moment in islice(range.slices(), _MARKED_MAX))
    written = [each for each in stands if each is not None and each.state is Standing.PUBLISHED and each.at is not None]
    return max(written, key=lambda each: (each.at, each.run)).run if written else ""
