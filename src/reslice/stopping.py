"""The signals that ask a command to stop: Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal has gone."""

from __future__ import annotations

import signal

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


def heard() -> tuple[signal.Signals, ...]:
    """Return the signals to listen to: under nohup a command outlives its terminal."""
    hangup = getattr(signal, "SIGHUP", None)
    is_deaf = hangup is not None and signal.getsignal(hangup) is signal.SIG_IGN
    return tuple(number for number in SIGNALS if not (is_deaf and number == hangup))
