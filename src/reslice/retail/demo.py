"""`reslice demo`: make the example project in a directory, tell its story step by step, and leave it there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reslice.retail import demo_folder, demo_steps, demo_text
from reslice.retail.demo_steps import Story


def run(folder: Path, say: Callable[[str], None] = lambda _text: None) -> Story:
    """Tell the story through `say` while it happens, and leave the project in `folder`, with the current table.

    A new or empty directory is filled; the files of an earlier demo are made anew. Raises Misused[usage] when `folder`
    holds anything else and Retryable[database_busy] when an earlier demo is in use, with nothing in it touched.
    """
    is_again = demo_folder.make(folder)
    say(demo_text.opening(folder, is_again=is_again))
    steps = []
    for step in demo_steps.tell(folder):
        steps.append(step)
        say("\n" + demo_text.step_text(step, len(steps)))
    story = Story(folder, is_again, tuple(steps))
    say("\n" + demo_text.ending(story))
    return story
