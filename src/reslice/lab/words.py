"""What the page says of a state, written by rules from the state's figures; and where to go next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reslice.lab.choices import ALL_DAYS, DEFAULT, RANGES, Choice, Days, Pattern, Start
from reslice.lab.states import Group, State

NAMES = {
    Pattern.APPEND: "append",
    Pattern.REPLACE_SLICE: "replace slice",
    Pattern.UPSERT: "upsert, no delete",
    Pattern.INSERT_MISSING: "insert missing",
    Pattern.BOUNDS_DISAGREE: "bounds disagree",
    Pattern.MERGE_SCOPED_DELETE: "merge, scoped delete",
}
MEANINGS = {
    Pattern.APPEND: "Insert the recomputed rows.",
    Pattern.REPLACE_SLICE: "Delete the range, insert it, commit once.",
    Pattern.UPSERT: "Overwrite keys that are there, add new ones.",
    Pattern.INSERT_MISSING: "Add new keys, keep what is there.",
    Pattern.BOUNDS_DISAGREE: "The delete stops before the end date, the insert includes it.",
    Pattern.MERGE_SCOPED_DELETE: "Overwrite, add, and delete keys that are gone, inside the range.",
}
STARTS = {
    Start.CURRENT: ("the current table", "It holds what the orders add up to."),
    Start.BEFORE_FOLLOW_UP: (
        "before the follow-up",
        "Since then one order has moved to the next day, one has another amount, and a late one has come.",
    ),
}
WALK_BEGINS = Choice(Pattern.APPEND, RANGES[0], 1, Start.CURRENT)
WALK_ENDS = "where-to-go"
_RUNS = {1: "One run", 2: "Two runs"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence on what happened, of which `loud` is the trouble, and the same in a few words."""

    begins: str
    loud: Markup
    ends: Markup
    glance: Markup


@dataclass(frozen=True, slots=True)
class Badge:
    """Whether the pattern is safe here: `tone` is good, warn or bad."""

    tone: str
    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes or no to one question, and why."""

    question: str
    yes: bool
    why: Markup


def figure(number: int) -> Markup:
    """Return a number with its thousands separated, and without separators in the page's data."""
    return Markup('<data value="{}">{}</data>').format(number, f"{number:,}")


def moved(number: int) -> Markup:
    """Return a difference with its sign."""
    return Markup('<data value="{}">{}</data>').format(number, f"{number:+,}".replace("-", "\N{MINUS SIGN}"))


def counted(number: int, noun: str) -> Markup:
    """Return a number of things."""
    return Markup("{} {}").format(figure(number), noun if number == 1 else f"{noun}s")


def whole(text: object) -> Markup:
    """Return a day, or another word, that no line break takes apart."""
    return Markup('<span class="whole">{}</span>').format(text)


def range_shown(days: Days) -> Markup:
    """Return a closed range; a line may break between its days."""
    return Markup("{}<wbr>{}").format(whole(f"{days.start}.."), whole(days.end))


def command_shown(line: str) -> Markup:
    """Return a command; a line may break between its words."""
    return Markup(" ").join(map(whole, line.split(" ")))


def verdict(state: State) -> Verdict:
    """Return what happened, in a sentence."""
    runs, cents = _RUNS[state.choice.runs], state.orders.range.cents
    times, excess = runs.lower(), state.last.range.cents - cents
    if excess:
        much = Markup("{} too {}").format(counted(abs(excess), "cent"), "much" if excess > 0 else "little")
        glance = Markup("{} cents after {}").format(moved(excess), times)
        return Verdict(f"{runs}, and the table reports ", much, Markup("."), glance)
    if not state.equal_in_range:
        wrong = counted(len(differing(state)), "group")
        glance = Markup("{} wrong after {}").format(wrong, times)
        return Verdict(f"{runs}, and the total is right by chance: ", wrong, Markup(" differ."), glance)
    has_moved = state.before.groups != state.last.groups
    ends = Markup(": {}.").format(counted(cents, "cent"))
    glance = Markup("{}, as ordered, after {}").format(counted(cents, "cent"), times)
    done = "the range follows the orders" if has_moved else "nothing has moved"
    return Verdict(f"{runs}, and {done}", Markup(""), ends, glance)


def badge(state: State) -> Badge:
    """Return whether one may run it again, and whether that is enough."""
    if not state.repeats:
        return Badge("bad", "✕", "Not safe to run again")
    if not state.equal_in_range:
        return Badge("warn", "!", "Safe to run again, and wrong")
    return Badge("good", "✓", "Safe to run again")


def facts(state: State) -> tuple[Markup, ...]:
    """Return what is behind the verdict, a sentence each."""
    found = [Markup("The orders of the range add up to {}.").format(counted(state.orders.range.cents, "cent"))]
    found += [*_repeated(state), *_left_behind(state), *_short(state), *_removed(state), *_outside(state)]
    return tuple(found)


def _repeated(state: State) -> Iterable[Markup]:
    inside = groups_inside(state, state.last.groups)
    many = [group for group in inside if group.rows > 1]
    if many:
        yield Markup("{} of {} in the range {} in more than one row.").format(
            figure(len(many)), counted(len(inside), "group"), "stands" if len(many) == 1 else "stand"
        )


def _left_behind(state: State) -> Iterable[Markup]:
    for group in groups_inside(state, state.last.groups):
        if state.orders.group(group.key) is None:
            yield Markup("{} has no order any more and is still there, with {}.").format(
                named([group]), counted(group.cents, "cent")
            )


def _short(state: State) -> Iterable[Markup]:
    short = [group for group in groups_inside(state, state.orders.groups) if excess_of(state, group) < 0]
    if short:
        missing = -sum(excess_of(state, group) for group in short)
        yield Markup("{} {} less than the orders: {} missing.").format(
            named(short), "holds" if len(short) == 1 else "hold", counted(missing, "cent")
        )


def _removed(state: State) -> Iterable[Markup]:
    for group in groups_inside(state, state.before.groups):
        if state.last.group(group.key) is None:
            yield Markup("{} has no order any more, and its row is gone.").format(named([group]))


def _outside(state: State) -> Iterable[Markup]:
    days = [day for day in ALL_DAYS if day not in state.choice.days and not _is_day_equal(state, str(day))]
    if days:
        yield Markup("{}, outside the range, is not what the orders say: no run was asked for it.").format(
            Markup(" and ").join(map(whole, days))
        )


def _is_day_equal(state: State, day: str) -> bool:
    one, other = ([each for each in stage.groups if each.order_date == day] for stage in (state.last, state.orders))
    return one == other


def excess_of(state: State, ordered: Group) -> int:
    """Return by how many cents the table is above the orders in a group of theirs."""
    there = state.last.group(ordered.key)
    return (there.cents if there else 0) - ordered.cents


def differing(state: State) -> list[tuple[str, str]]:
    """Return the keys of the range whose group in the table is not the one of the orders, sorted."""
    keys = {group.key for stage in (state.last, state.orders) for group in groups_inside(state, stage.groups)}
    return sorted(key for key in keys if state.last.group(key) != state.orders.group(key))


def groups_inside(state: State, groups: Iterable[Group]) -> list[Group]:
    """Return the groups whose day lies in the range."""
    days = state.choice.days
    return [group for group in groups if str(days.start) <= group.order_date <= str(days.end)]


def named(groups: Sequence[Group]) -> Markup:
    """Return the keys of groups as words."""
    return Markup(" and ").join(Markup("{} {}").format(whole(group.order_date), group.channel) for group in groups)


def answers(state: State) -> tuple[Answer, Answer]:
    """Return the two questions of `verify`: they are two, and a table may pass either alone."""
    again = "leaves exactly the rows of the first." if state.repeats else "leaves other rows than the first."
    wrong = len(differing(state))
    if wrong:
        why = Markup("{} of the range {}.").format(counted(wrong, "group"), "differs" if wrong == 1 else "differ")
    else:
        why = Markup("The range holds what the orders add up to." if state.equal_in_range else "Rows differ.")
    return (
        Answer("repeats", state.repeats, Markup("A second run {}").format(again)),
        Answer("equal to the source", state.equal_in_range, why),
    )


def next_step(choice: Choice) -> tuple[str, str]:
    """Return the address of the next thing to look at, and what it is."""
    if choice.runs == 1:
        return _address(choice.pattern, choice), "run it a second time"
    follow_up = Choice(choice.pattern, RANGES[0], 2, Start.BEFORE_FOLLOW_UP)
    if choice.pattern.needs_key and choice.start is Start.CURRENT:
        return follow_up.address, "start before the follow-up"
    match choice.pattern:
        case Pattern.APPEND:
            return _address(Pattern.REPLACE_SLICE, choice), "do the same with replace slice"
        case Pattern.REPLACE_SLICE:
            return _address(Pattern.UPSERT, follow_up), "see what an upsert leaves behind"
        case Pattern.UPSERT | Pattern.INSERT_MISSING:
            return _address(Pattern.BOUNDS_DISAGREE, DEFAULT), "see a replacement whose bounds disagree"
        case Pattern.BOUNDS_DISAGREE:
            return _address(Pattern.MERGE_SCOPED_DELETE, follow_up), "see a MERGE that also deletes"
        case Pattern.MERGE_SCOPED_DELETE:
            return WALK_ENDS, "where to go from here"


def _address(pattern: Pattern, like: Choice) -> str:
    return Choice(pattern, like.days, 2, like.start).address
