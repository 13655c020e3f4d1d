"""The hard questions: is the table old or new when the command is killed, and is it doubled by two at once.

Each try has a fresh copy of the database. The table is compared by rows, sums and digest with what it was before and
what one undisturbed run leaves.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from reslice.engines.sandbox import Place
from reslice.prove.command import Ended, Running, tail
from reslice.prove.shape import Shape
from reslice.prove.table import opened
from reslice.prove.values import AtOnce, Between, Comparison, Crash, Pair, State, Subject, Try


@dataclass(frozen=True, slots=True)
class Setting:
    """What is needed to run a command in a fresh copy.

    `seconds` is how long an undisturbed run takes, `idle` how long it was not at work in the database; None where that
    is not known.
    """

    place: Place
    subject: Subject
    shape: Shape
    words: Sequence[str]
    timeout: timedelta | None
    stop: threading.Event
    before: State
    after: State
    seconds: float
    idle: float | None
    on_step: Callable[[str], None]


def crash(setting: Setting, tries: int, seed: int) -> Crash:
    """Kill the command at random moments, and say what the table was each time.

    One in each of `tries` equal parts of the time that a run takes, in random order. Where it is known from when on an
    undisturbed run is at work in the database, two of three are moments of that time, counted from when this one is.
    """
    chance = random.Random(seed)
    shares = [(part + chance.random()) / tries for part in range(tries)]
    chance.shuffle(shares)
    found = []
    for number, share in enumerate(shares, start=1):
        setting.on_step(f"killing it, {number} of {tries}")
        found.append(_try(setting, share, is_at_work=setting.idle is not None and number % 3 != 0))
    return Crash(seed, tuple(found))


def _try(setting: Setting, share: float, *, is_at_work: bool) -> Try:
    place = setting.place.another()
    try:
        running = Running(setting.words, place.way(), setting.subject.name)
        if is_at_work:
            ended = running.kill(share * (setting.seconds - (setting.idle or 0)), setting.stop, place.is_in_use)
        else:
            ended = running.kill(share * setting.seconds, setting.stop)
        place.settle()
        with opened(place, setting.subject, shape=setting.shape) as now:
            found = now.evidence.live(now.rows)
    finally:
        place.remove()
    return Try(round(ended.seconds, 3), not ended.was_killed, _word(setting, found), found.rows)


def _word(setting: Setting, found: State) -> str:
    """Return whether a state is the one from before, the one after, or neither."""
    if found.fingerprint == setting.after.fingerprint:
        return "after"
    return "before" if found.fingerprint == setting.before.fingerprint else "torn"


def at_once(setting: Setting, tries: int) -> AtOnce:
    """Start two commands at the same time, until they leave another table than one of them does, or `tries` times."""
    pairs: list[Pair] = []
    for number in range(1, tries + 1):
        setting.on_step(f"two at once, {number} of {tries}")
        place = setting.place.another()
        try:
            ended = _two(setting, place)
            place.settle()
            with opened(place, setting.subject, shape=setting.shape) as now:
                state = now.evidence.take("pair", now.rows)
                is_same = state.fingerprint == setting.after.fingerprint
                keys = Comparison(Between.KEYS) if is_same else now.evidence.keys("pair")
        finally:
            place.remove()
        pairs.append(_pair(place, ended, state, is_same=is_same))
        if not is_same:
            return AtOnce(tuple(pairs), keys)
    return AtOnce(tuple(pairs), Comparison(Between.KEYS))


def _pair(place: Place, ended: tuple[Ended, Ended], state: State, *, is_same: bool) -> Pair:
    failed = [each for each in ended if each.code]
    said = " ".join(tail(failed[0].output, 2)) if failed else ""
    was_apart = any(place.is_locked_out(each.output) for each in failed)
    return Pair((ended[0].code, ended[1].code), state, is_same, said, was_apart)


def _two(setting: Setting, place: Place) -> tuple[Ended, Ended]:
    first = Running(setting.words, place.way(), setting.subject.name)
    try:
        second = Running(setting.words, place.way(), setting.subject.name)
    except BaseException:
        first.discard()
        raise
    try:
        return first.wait(setting.timeout, setting.stop), second.wait(setting.timeout, setting.stop)
    except BaseException:
        first.discard()
        second.discard()
        raise
