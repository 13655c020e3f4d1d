"""A process that works for an audit: it reads what to do from its input and writes the answer to its output."""

from __future__ import annotations

import os
import pickle
import signal
import sys


def main() -> None:
    """Answer until whoever asks has gone; Ctrl-C is for that one to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answered = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            work, chunk = pickle.load(asked)
        except EOFError:
            return
        answers = pickle.dumps([work(each) for each in chunk])
        try:
            answered.write(answers)
            answered.flush()
        except BrokenPipeError:  # whoever asked has gone, and what is still to be written would fail at the end again
            os._exit(1)


if __name__ == "__main__":
    main()
