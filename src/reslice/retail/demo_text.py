"""How the demo reads, as text and as JSON: the commands, the product's own answers, and a sentence or two between."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from reslice.layout import escaped, table
from reslice.report import fact_lines, run_text
from reslice.report_json import as_json
from reslice.retail.demo_steps import (
    TARGET,
    THREE_DAYS,
    TWO_DAYS,
    WATCHED,
    Answer,
    Appended,
    Events,
    KeyViolation,
    Step,
    Story,
    Table,
)
from reslice.values import Run

SYNTHETIC = "Synthetic orders, made up for this story: no figure here is accounting revenue."


def opening(folder: Path, *, is_again: bool) -> str:
    """Return what is said before the first step."""
    lines = [
        f"The story of a late correction. {SYNTHETIC}",
        f"{TARGET} holds the orders of a shop, per day and channel, with their amount in cents.",
    ]
    if is_again:
        where = escaped(str(folder))
        lines.append(f"An earlier demo in {where} is made anew: its own files only; nothing else there is touched.")
    return "\n".join([*lines, "", f"$ cd {_quoted(folder)}"])


def step_text(step: Step, number: int) -> str:
    """Return one step as it is told."""
    end = "\n".join(part for part in (step.learnt, _table_line(step)) if part)
    parts = [f"== {number}. {step.title} ==", step.told, _prompts(step.commands) + "\n" + answer_text(step.answer), end]
    return "\n\n".join(part for part in parts if part)


def answer_text(answer: Answer) -> str:
    """Return what a command answered; a run exactly as the command line prints it."""
    match answer:
        case Run():
            return run_text(answer)
        case Events():
            return _events_text(answer)
        case KeyViolation():
            return "\n".join(escaped(line) for line in answer.message.splitlines() if line)
        case _:
            return _appended_text(answer)


def ending(story: Story) -> str:
    """Return where the project is, and commands that work when they are pasted."""
    lines = [f"The project is in {escaped(str(story.folder))}. To go on from here:", ""]
    lines += [f"  {command}" for command in (*_path_lines(), f"cd {_quoted(story.folder)}", *_commands_to_try(story))]
    lines += ["", "The last of these is the way back: it undoes the correction alone, and status then names its days."]
    real = "Real input, a year of grocery sales, corrected and run again, in a checkout of reslice:"
    return "\n".join([*lines, "", real, "", "  make grocery"])


def story_json(story: Story) -> dict[str, Any]:
    """Return the figures of every step."""
    folder = str(story.folder)
    return {
        "schema": "reslice/demo/1",
        "note": SYNTHETIC,
        "directory": folder,
        "replaced_earlier_demo": story.is_again,
        "steps": [_step_value(step, f"-C {_quoted(story.folder)}") for step in story.steps],
        "try": _commands_to_try(story),
        "error": None,
        "next": f"reslice -C {_quoted(story.folder)} history {TARGET}",
        "exit_code": 0,
    }


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


def _commands_to_try(story: Story) -> list[str]:
    """Return commands for a person who has read the story, to be given in its directory."""
    published = story.step("run").answer
    assert isinstance(published, Run), "the step is a run"
    return [
        f"reslice history {TARGET}",
        f"reslice show {published.id} --diff",
        f"reslice plan {TARGET} {THREE_DAYS} --rewrite --sql",
        f"reslice run {TARGET} {TWO_DAYS} --with-affected",
        f"reslice verify {TARGET} {THREE_DAYS}",
        f"reslice status {TARGET}",
        f"reslice restore {published.id} --yes",
    ]


def _path_lines() -> list[str]:
    """Return the line that makes `reslice` known to a shell that does not know the word; none is needed as a rule."""
    beside = str(Path(sys.executable).parent)
    if shutil.which("reslice") is not None or shutil.which("reslice", path=beside) is None:
        return []
    return [f"export PATH={shlex.quote(beside)}{os.pathsep}$PATH"]


def _prompts(commands: tuple[str, ...]) -> str:
    """Return each command behind the prompt at which it would be typed."""
    lines: list[str] = []
    for command in commands:
        prompt = "$" if command.startswith("reslice ") else "sql>"
        first, *others = command.splitlines()
        lines += [f"{prompt} {first}", *(f"{'':{len(prompt)}} {line}" for line in others)]
    return "\n".join(lines) + ("\n" if lines[-1].startswith(" ") or len(commands) > 1 else "")


def _table_line(step: Step) -> str:
    """Return what the whole table adds up to; for a copy, that it is one."""
    if isinstance(step.answer, tuple | Events):
        return ""
    whose = "The copy, unchanged" if isinstance(step.answer, KeyViolation) else f"The whole of {TARGET}"
    return f"{whose}: {_totals_text(step.table)}."


def _totals_text(found: Table) -> str:
    return f"{found.rows} rows, {found.orders} orders, {found.cents} cents"


def _events_text(events: Events) -> str:
    named = fact_lines((each.event_id or "(no id)", each.reasons) for each in events.rejected)
    counts = fact_lines(
        [
            ("events arrived", str(events.arrived)),
            ("repeats", f"{events.repeats}, counted once"),
            ("rejected", str(len(events.rejected))),
            ("accepted", str(events.accepted)),
            ("  superseded or stale", str(events.superseded)),
            ("  current", str(events.current)),
        ]
    )
    return "\n".join([*named, "", *counts])


def _appended_text(states: tuple[Appended, ...]) -> str:
    day, channel = WATCHED
    head = ["", f"{channel} on {day}", f"the whole of {TARGET}"]
    rows = [
        [_times(state.times), f"{state.orders} orders, {state.cents} cents", _totals_text(state.table)]
        for state in states
    ]
    return "\n".join(f"  {line}" for line in table([head, *rows], gap="   "))


def _times(times: int) -> str:
    return ("as it stands", "appended once", "appended twice")[times]


def _step_value(step: Step, place: str) -> dict[str, Any]:
    return {
        "step": step.name,
        "title": step.title,
        "commands": [*step.commands],
        **_answer_value(step.answer, place),
        "table": _table_value(step.table),
    }


def _answer_value(answer: Answer, place: str) -> dict[str, Any]:
    """Return the figures of an answer below a name that says what they are."""
    match answer:
        case Run():
            return {"answer": as_json(answer, place=place)}
        case Events():
            return {"events": _events_value(answer)}
        case KeyViolation():
            return {"database_error": answer.message}
        case _:
            return {"appends": [_appended_value(state) for state in answer]}


def _events_value(events: Events) -> dict[str, Any]:
    return {
        "arrived": events.arrived,
        "repeats": events.repeats,
        "rejected": [{"event_id": each.event_id, "reasons": each.reasons} for each in events.rejected],
        "accepted": events.accepted,
        "superseded": events.superseded,
        "current": events.current,
    }


def _appended_value(state: Appended) -> dict[str, Any]:
    day, channel = WATCHED
    group = {"order_date": str(day), "channel": channel, "orders": state.orders, "cents": state.cents}
    return {"times": state.times, "group": group, "table": _table_value(state.table)}


def _table_value(found: Table) -> dict[str, int]:
    return {"rows": found.rows, "orders": found.orders, "cents": found.cents}
