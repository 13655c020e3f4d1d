"""Where the command begins. Until the rest is loaded, Ctrl-C ends it at once and without a word: nothing has begun."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line and return the exit code."""
    from reslice import cli

    return cli.main()
