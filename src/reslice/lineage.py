"""OpenLineage events of runs, sent when OpenLineage is configured, in the client's own ways, and never in a run's way.

START is sent when a run stands in the ledger, COMPLETE or FAIL when it has ended and let go of the database. A thread
of its own sends, so no transaction waits for a server; at the end the run waits a few seconds at most. Whatever goes
wrong becomes a warning of the run. Where nothing is configured, nothing is imported and nothing is sent.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reslice.errors import Interrupted, ResliceError
from reslice.recorded import LedgerRun
from reslice.values import Outcome, Run

if TYPE_CHECKING:
    from reslice.contract import Connection

Recorded = Callable[[], Sequence[LedgerRun]]
Told = Callable[[Run, Recorded, str], None]
"""What is told that a run stands in the ledger: the run, how to look it up, and the address of the server."""

WAIT_SECONDS = 4.0
"""How long a run waits, after it has ended, for its events to be taken; a slow server gets no more."""

_FILES = ("openlineage.yml", "~/.openlineage/openlineage.yml")
_NOT_INSTALLED = "OpenLineage is configured, and its client is not installed: pip install 'reslice[openlineage]'"


class NoTransport(Exception):
    """The variables and files of OpenLineage are there, and none of them says where events go."""

    def __str__(self) -> str:
        return "its configuration names no transport"


def is_configured(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether OpenLineage is meant to be told: by one of its variables, or by one of its files."""
    if environment.get("OPENLINEAGE_DISABLED", "").lower().strip() == "true":
        return False
    names = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE__TRANSPORT__TYPE")
    return any(environment.get(name) for name in names) or any(map(os.path.isfile, map(os.path.expanduser, _FILES)))


def followed(work: Callable[[Told], Run], connection: Connection) -> Run:
    """Return what `work` returns, or raise what it raises, having told OpenLineage how the run began and ended.

    `work` tells the function it is given of the run as soon as the ledger has it, and of where its database is. A run
    that never gets so far has no events.
    """
    if not is_configured():
        return work(_tell_nobody)
    follower = _Follower(connection)
    try:
        run = work(follower.began)
    except ResliceError as error:
        if error.run is not None:
            error.run = _warned(error.run, follower.ended("FAIL", replace(error.run, error=error)))
        raise
    except BaseException:
        follower.broke_off()
        raise
    return _warned(run, follower.ended("COMPLETE", run))


def _tell_nobody(_run: Run, _recorded: Recorded, _address: str) -> None:
    """Tell nobody that a run has begun."""


def _warned(run: Run, warning: str) -> Run:
    return replace(run, warnings=(*run.warnings, warning)) if warning else run


class _Follower:
    """Follows one run and sends what happens to it. No method raises, but for an interruption of the run itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._begun: Run | None = None
        self._uuid = ""
        self._namespace = ""
        self._problem = ""
        self._sender: _Sender | None = None
        try:
            from reslice import lineage_events
        except ImportError:
            self._problem = _NOT_INSTALLED
        else:
            self._events = lineage_events

    def began(self, run: Run, recorded: Recorded, address: str) -> None:
        """Send START for a run that stands in the ledger."""
        self._begun = run
        if self._problem:
            return
        try:
            self._namespace = self._events.dataset_namespace(self._connection, address)
            self._uuid = self._events.run_uuid(recorded()[0], self._namespace)
            self._sender = _Sender(self._events.client)
            self._send("START", run)
        except Interrupted:
            raise
        except Exception as error:  # An integration that fails is no reason for a run to fail.
            self._problem = f"OpenLineage was not told: {_said(error)}"

    def ended(self, state: str, run: Run) -> str:
        """Send the last event and wait for those that were sent; return what to warn of, if anything."""
        if self._begun is None:
            return ""
        try:
            if self._sender is not None:
                self._send(state, run)
                return self._sender.end(WAIT_SECONDS) or self._problem
        except Exception as error:  # As above: what is said of a run never changes what became of it.
            return f"OpenLineage was not told: {_said(error)}"
        return self._problem

    def broke_off(self) -> None:
        """Send FAIL for a run that ended in a way nobody foresaw."""
        if self._begun is not None:
            self.ended("FAIL", replace(self._begun, outcome=Outcome.UNKNOWN))

    def _send(self, state: str, run: Run) -> None:
        assert self._sender is not None, "what is sent has a sender"
        self._sender.send(self._events.event(state, run, self._uuid, self._namespace))


class _Sender:
    """A thread that makes the client and emits events in order, until one fails or it is told to end."""

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._given = 0
        self._taken = 0
        self._problem = ""
        self._is_given_up = False
        # A daemon: a server that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="reslice-lineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Queue one event."""
        self._given += 1
        self._events.put(event)

    def end(self, seconds: float) -> str:
        """Return what went wrong, or nothing when every event was taken within `seconds`."""
        self._events.put(None)
        self._thread.join(seconds)
        self._is_given_up = self._thread.is_alive()
        problem = f"no more within {seconds:.0f} seconds" if self._is_given_up else self._problem
        return f"OpenLineage took {self._taken} of {self._given} events: {problem}" if problem else ""

    def _work(self) -> None:
        try:
            client = self._make_client()
            for event in iter(self._events.get, None):
                if self._is_given_up:
                    return
                client.emit(event)
                self._taken += 1
            if client.close(WAIT_SECONDS) is False:
                self._problem = "some are still on their way"
        except Exception as error:  # Transports are anybody's code, and a thread has nobody to raise to.
            self._problem = _said(error)


def _said(error: Exception) -> str:
    """Return an error without its message, which may hold a URL with a password."""
    if isinstance(error, NoTransport):
        return str(error)
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ if status is None else f"{type(error).__name__}, status {status}"
