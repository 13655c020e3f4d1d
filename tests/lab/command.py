"""The command `reslice lab`, running."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RESLICE = Path(sys.executable).with_name("reslice")


@contextmanager
def serving_lab(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, and yield it with the first line it prints."""
    command = [str(RESLICE), "lab", "--no-browser", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().rstrip("\n")
    finally:
        process.kill()
        process.communicate()
