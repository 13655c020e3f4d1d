"""What OpenLineage is told of a run, in the classes of its client; imported only when a run is followed.

The job is the table that is kept up to date, the output is that table, and inputs are not known: the source is SQL that
reslice does not take apart. The facet `reslice` holds figures and fingerprints, and no value of any row.
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from typing import Any

import attr
from openlineage.client import OpenLineageClient, event_v2
from openlineage.client.facet_v2 import RunFacet, error_message_run, job_type_job
from openlineage.client.uuid import generate_static_uuid

from reslice import __version__
from reslice.contract import Connection
from reslice.errors import ResliceError
from reslice.lineage import NoTransport
from reslice.recorded import LedgerRun
from reslice.values import Outcome, Run

PRODUCER = f"pkg:generic/reslice@{__version__}"
"""A package URL: it names the program and its version, and is no address to fetch anything from."""

NAMESPACE = "reslice"

SCHEMES = {"postgresql": "postgres"}
"""What OpenLineage calls an engine, where that is not what a contract calls it."""

# Without a handler of its own the client's log would be printed on stderr, amid the answer of a command.
logging.getLogger("openlineage").addHandler(logging.NullHandler())


@attr.define
class ResliceRunFacet(RunFacet):
    """What a run was asked and did. Its schema is RunFacet, which leaves other fields free; a reader ignores them."""

    run: str | None
    """The run's id in the ledger, such as r-0042."""
    kind: str
    """What the run was for: run, or restore."""
    target: str
    """The target's name in the contract."""
    range: str
    """The slices as they are typed, both ends included."""
    unit: str
    """How long one slice is."""
    slices: int
    """How many slices the range has."""
    method: str
    """How a slice is replaced."""
    outcome: str
    """How it ended: published, unchanged, restored, stopped, refused, failed or unknown; requested in START."""
    restores: str | None = None
    """The run whose replaced rows a restore puts back."""
    targetChanged: bool | None = None
    """Whether the table's rows are others than before; absent when that is not known."""
    slicesPublished: int | None = None
    """How many slices were written."""
    diff: dict[str, int] | None = None
    """Groups added, changed, removed and unchanged; absent when nothing was compared."""
    rows: dict[str, int] | None = None
    """Rows of the range: before, staged, and after when they were read back."""
    fingerprint: dict[str, str] | None = None
    """Fingerprints of the range: base, staged, and after when they were read back."""
    error: str | None = None
    """The kind of the error that ended it."""


def client() -> OpenLineageClient:
    """Return the client, as its own variables and files configure it; NoTransport when they name none."""
    made = OpenLineageClient()
    if made.transport.kind == "console" and not (made.config.transport or {}).get("type"):
        raise NoTransport
    location = made.config.facets.source_code_location
    if location.repo_url is None:
        location.disabled = True  # a remote's URL, read from the folder's git, may hold a token
    return made


def run_uuid(recorded: LedgerRun, namespace: str) -> str:
    """Return the run's UUID: always the same for one row of a ledger, and sorted by the time of its request."""
    name = "\n".join([namespace, recorded.table, recorded.id])
    return str(generate_static_uuid(recorded.requested_at, name.encode("utf-8", "surrogatepass")))


def dataset_namespace(connection: Connection, address: str) -> str:
    """Return the database as OpenLineage names it: DuckDB by its file, PostgreSQL by the host and port of its server.

    A path that holds a secret stays as it is shown. A server's `address` is told wherever the URL has it from, since
    one server is to have one name: who connects, and by which password, is not part of it.
    https://github.com/OpenLineage/OpenLineage/blob/main/spec/Naming.md
    """
    if address:
        return f"{SCHEMES.get(connection.engine, connection.engine)}://{address}"
    if "${" in connection.shown:
        return connection.shown
    if connection.path is None:
        return f"{connection.engine}://:memory:"
    return f"{connection.engine}://{os.path.abspath(connection.path)}"


def event(state: str, run: Run, uuid: str, namespace: str) -> event_v2.RunEvent:
    """Return one event: START, COMPLETE or FAIL. The table is in the database of `namespace`."""
    job_type = job_type_job.JobTypeJobFacet("BATCH", "RESLICE", jobType="TABLE", producer=PRODUCER)
    facets: dict[str, RunFacet] = {"reslice": _facet(state, run)}
    if run.error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            _message(run.error), programmingLanguage="SQL", producer=PRODUCER
        )
    return event_v2.RunEvent(
        eventType=event_v2.RunState(state),
        eventTime=datetime.now(UTC).isoformat(timespec="milliseconds"),
        run=event_v2.Run(uuid, facets=facets),
        job=event_v2.Job(
            os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE, f"reslice.{run.table}", facets={"jobType": job_type}
        ),
        outputs=[event_v2.OutputDataset(namespace, run.table)],
        producer=PRODUCER,
    )


def _message(error: ResliceError) -> str:
    """Return what kind of error it was and of what; what was found may name rows, and stays in the ledger."""
    kinds = ", ".join(dict.fromkeys(failure.kind for failure in error.failures))
    return f"{error.word}[{kinds}]: {error.about}"


def _facet(state: str, run: Run) -> ResliceRunFacet:
    is_begun = state == "START"
    is_known = not is_begun and (run.target_changed or run.outcome is not Outcome.UNKNOWN)
    return ResliceRunFacet(
        run=run.id,
        kind=str(run.kind),
        target=run.target,
        range=run.scope.text,
        unit=str(run.unit),
        slices=run.scope.count,
        method=str(run.method),
        outcome="requested" if is_begun else str(run.outcome),
        restores=run.restores or None,
        targetChanged=run.target_changed if is_known else None,
        slicesPublished=None if is_begun else len(run.slices_done),
        error=None if run.error is None else run.error.kind,
        producer=PRODUCER,
        **_compared(run),
    )


def _compared(run: Run) -> dict[str, Any]:
    """Return what was compared and read back, in the fields of the facet; nothing before there is a diff."""
    if run.diff is None:
        return {}
    counts = run.diff.counts
    rows = {"before": run.diff.base.rows, "staged": run.diff.staged.rows}
    prints = {"base": str(run.diff.base), "staged": str(run.diff.staged)}
    return {
        "diff": {
            "added": counts.added,
            "changed": counts.changed,
            "removed": counts.removed,
            "unchanged": counts.unchanged,
        },
        "rows": rows if run.rows_after is None else rows | {"after": run.rows_after},
        "fingerprint": prints if run.after is None else prints | {"after": str(run.after)},
    }
