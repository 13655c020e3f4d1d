"""Tell a story with real commands: each is shown as it would be typed, then run.

One that does not end with the exit code it should ends the story.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

PYTHON = Path(sys.executable)
RESLICE = PYTHON.with_name("reslice")


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def shown(word: str | Path) -> str:
    """Return a word of a command as a person in the current directory would type it."""
    if isinstance(word, str):
        return word
    if word in (PYTHON, RESLICE):
        return word.name
    path = word.absolute()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def command(*words: str | Path, output: Path | None = None, code: int = 0) -> None:
    """Show a command and run it; with `output`, its standard output becomes that file."""
    typed = shlex.join(map(shown, words))
    if output is None:
        print(f"$ {typed}", flush=True)
        ended = subprocess.run(words, check=False)
    else:
        print(f"$ {typed} > {shown(output)}", flush=True)
        with output.open("w", encoding="utf-8") as file:
            ended = subprocess.run(words, check=False, stdout=file)
    if ended.returncode != code:
        sys.exit(f"the story ends here: that command ended with {ended.returncode}")


def module(name: str, *words: str | Path, output: Path | None = None) -> None:
    """Show and run a module of the examples, as `command` does."""
    command(PYTHON, "-m", f"examples.{name}", *words, output=output)
