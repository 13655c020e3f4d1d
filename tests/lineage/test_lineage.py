"""OpenLineage is told of runs when it is configured, and never changes what becomes of a run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import attr
import pytest
from openlineage.client import event_v2
from openlineage.client.generated.base import RunFacet

import reslice
from reslice import lineage
from reslice.errors import Interrupted, Refused, Stopped
from tests.lineage.server import Server
from tests.unit.shop import AFTER, BEFORE, DAYS, RUN, make_shop, rows

SECRET = "fox-and-hound"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop")


def target(shop: Path) -> reslice.TargetHandle:
    return reslice.open(shop / "reslice.yml").target("daily_orders")


def facet(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = event["run"]["facets"]["reslice"]
    return {name: value for name, value in found.items() if not name.startswith("_")}


# What is sent


def test_a_run_is_told_when_it_begins_and_when_it_is_complete(shop: Path, server: Server) -> None:
    found = target(shop).run(DAYS)
    assert found.warnings == ()
    assert rows(shop) == AFTER
    assert server.paths == ["/api/v1/lineage", "/api/v1/lineage"]
    assert server.types == ["START", "COMPLETE"]
    start, complete = server.events
    assert start["run"]["runId"] == complete["run"]["runId"]
    for event in server.events:
        assert event["job"]["namespace"] == "reslice"
        assert event["job"]["name"] == "reslice.shop.main.daily_orders"
        assert event["inputs"] == []
        assert [(each["namespace"], each["name"]) for each in event["outputs"]] == [
            (f"duckdb://{shop}/shop.duckdb", "shop.main.daily_orders")
        ]
        assert datetime.fromisoformat(event["eventTime"]).utcoffset() is not None
    assert facet(start) == {
        "run": "r-0001",
        "kind": "run",
        "target": "daily_orders",
        "range": DAYS,
        "unit": "day",
        "slices": 2,
        "method": "replace_slice",
        "outcome": "requested",
    }
    prints = facet(complete).pop("fingerprint")
    assert facet(complete) == facet(start) | {
        "outcome": "published",
        "targetChanged": True,
        "slicesPublished": 2,
        "diff": {"added": 0, "changed": 2, "removed": 1, "unchanged": 1},
        "rows": {"before": 4, "staged": 3, "after": 3},
        "fingerprint": prints,
    }
    shown = reslice.open(shop / "reslice.yml").show("r-0001")
    assert prints == {
        "base": shown.fingerprint_base,
        "staged": shown.fingerprint_staged,
        "after": shown.fingerprint_after,
    }
    assert prints["staged"] == prints["after"] != prints["base"]


def test_the_same_run_again_is_complete_and_another_run(shop: Path, server: Server) -> None:
    target(shop).run(DAYS)
    target(shop).run(DAYS)
    assert server.types == ["START", "COMPLETE"] * 2
    ids = [event["run"]["runId"] for event in server.events]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert len({event["job"]["name"] for event in server.events}) == 1
    last = facet(server.events[-1])
    assert (last["outcome"], last["targetChanged"], last["slicesPublished"]) == ("unchanged", False, 0)


def test_the_uuid_is_made_of_the_ledgers_row(shop: Path, server: Server) -> None:
    from reslice.lineage_events import run_uuid

    target(shop).run(DAYS)
    recorded = reslice.open(shop / "reslice.yml").show("r-0001")
    found = UUID(run_uuid(recorded, f"duckdb://{shop}/shop.duckdb"))
    assert str(found) == server.events[0]["run"]["runId"]
    assert found.int >> 80 == int(recorded.requested_at.timestamp() * 1000), "it sorts by the time of the request"


@pytest.mark.parametrize(
    ("range_text", "source", "kind", "outcome", "error"),
    [
        ("2026-01-03", None, Stopped, "stopped", "empty_slice"),
        (DAYS, "SELECT order_date, channel, 1 AS order_count, -1 AS amount_cents FROM orders", Refused, "refused", "x"),
    ],
)
def test_a_run_that_does_not_publish_fails(
    shop: Path, server: Server, range_text: str, source: str | None, kind: type[Exception], outcome: str, error: str
) -> None:
    if source is not None:
        (shop / "daily.sql").write_text(f"{source} WHERE order_date BETWEEN :start AND :end")
        error = "measure_minimum"
    with pytest.raises(kind):
        target(shop).run(range_text)
    assert server.types == ["START", "FAIL"]
    found = facet(server.events[1])
    assert (found["outcome"], found["targetChanged"], found["error"]) == (outcome, False, error)
    message = server.events[1]["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith(f"{outcome}[{error}")
    assert "12000" not in json.dumps(server.events) and "web" not in json.dumps(server.events), "no value of a row"
    assert rows(shop) == BEFORE


def test_a_restore_is_told_as_a_run_of_the_same_job(shop: Path, server: Server) -> None:
    target(shop).run(DAYS)
    target(shop).restore("r-0001")
    assert rows(shop) == BEFORE
    assert server.types == ["START", "COMPLETE"] * 2
    run, restore = server.events[1], server.events[3]
    assert restore["job"]["name"] == run["job"]["name"]
    found = facet(restore)
    assert (found["kind"], found["outcome"], found["restores"]) == ("restore", "restored", "r-0001")
    assert (found["diff"], found["rows"]) == (
        {"added": 1, "changed": 2, "removed": 0, "unchanged": 1},
        {"before": 3, "staged": 4, "after": 4},
    )
    assert found["fingerprint"]["after"] == facet(run)["fingerprint"]["base"]


def test_an_interrupted_run_fails(shop: Path, server: Server) -> None:
    project = reslice.open(shop / "reslice.yml")
    with pytest.raises(Interrupted):
        project.target("daily_orders").run(DAYS, on_step=lambda step: project.interrupt())
    assert server.types == ["START", "FAIL"]
    assert facet(server.events[1])["error"] == "interrupted"


def test_an_end_that_nobody_foresaw_is_a_fail(shop: Path, server: Server) -> None:
    def broken(step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        target(shop).run(DAYS, on_step=broken)
    assert server.types == ["START", "FAIL"]
    assert facet(server.events[1])["outcome"] == "unknown"
    assert "targetChanged" not in facet(server.events[1])


def test_what_never_gets_into_the_ledger_and_what_only_reads_is_not_told(shop: Path, server: Server) -> None:
    with pytest.raises(reslice.Misused):
        target(shop).run("2026-13")
    target(shop).plan(DAYS)
    target(shop).verify(DAYS, record=True)
    assert server.events == []


def test_events_are_those_of_the_clients_own_classes(shop: Path, server: Server) -> None:
    """Each is taken apart and put together again in the classes of the standard, which check what they are given."""
    target(shop).run(DAYS)
    for sent in server.events:
        event = event_v2.RunEvent(
            eventType=event_v2.RunState(sent["eventType"]),
            eventTime=sent["eventTime"],
            run=event_v2.Run(sent["run"]["runId"]),
            job=event_v2.Job(sent["job"]["namespace"], sent["job"]["name"]),
            outputs=[event_v2.OutputDataset(each["namespace"], each["name"]) for each in sent["outputs"]],
            producer=sent["producer"],
        )
        assert event.schemaURL == sent["schemaURL"]
        assert set(sent) == {field.name for field in attr.fields(event_v2.RunEvent)}
        facets = [sent["run"]["facets"]["reslice"], sent["job"]["facets"]["jobType"]]
        assert (
            {each["_producer"] for each in facets}
            == {sent["producer"]}
            == {f"pkg:generic/reslice@{reslice.__version__}"}
        )
        assert sent["run"]["facets"]["reslice"]["_schemaURL"] == RunFacet._get_schema()


def test_every_field_of_the_facet_is_on_the_page() -> None:
    page = (Path(reslice.__file__).parents[2] / "docs" / "watching.md").read_text(encoding="utf-8")
    table = page.split("The run facet `reslice`.")[1].split("\n\n")[1]
    told = [line.split("`")[1] for line in table.splitlines()[2:]]
    from reslice.lineage_events import ResliceRunFacet

    assert told == [field.name for field in attr.fields(ResliceRunFacet) if not field.name.startswith("_")]


# How it is configured


def test_where_nothing_is_configured_nothing_is_imported(shop: Path) -> None:
    script = (
        f"{RUN.replace('sys.exit(', 'code = (')}; print(sorted({{'openlineage', 'requests'}} & {{*sys.modules}}), code)"
    )
    for environment in ({}, {"OPENLINEAGE_DISABLED": "true", "OPENLINEAGE_URL": "http://127.0.0.1:9"}):
        done = subprocess.run(
            [sys.executable, "-c", script, "-C", str(shop), "run", "daily_orders", DAYS],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=True,
        )
        assert (done.stdout.splitlines()[-1], done.stderr) == ("[] 0", "")


@pytest.mark.parametrize("way", ["variable", "folder", "home"])
def test_a_file_of_the_client_says_where_events_go(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    events = tmp_path / "events.jsonl"
    folder = {"variable": tmp_path, "folder": tmp_path / "home", "home": tmp_path / "home" / ".openlineage"}[way]
    folder.mkdir(exist_ok=True)
    config = folder / ("lineage.yml" if way == "variable" else "openlineage.yml")
    config.write_text(f"transport:\n  type: file\n  log_file_path: {events}\n  append: true\n")
    if way == "variable":
        monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    if way == "home":
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "night")
    assert target(shop).run(DAYS).warnings == ()
    sent = [json.loads(line) for line in events.read_text().splitlines()]
    assert [event["eventType"] for event in sent] == ["START", "COMPLETE"]
    assert {event["job"]["namespace"] for event in sent} == {"night"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OPENLINEAGE_URL": ""}, False),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:1"}, True),
        ({"OPENLINEAGE_CONFIG": "/nowhere"}, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "console"}, True),
        ({"OPENLINEAGE__TRANSPORT": '{"type": "console"}'}, True),
        ({"OPENLINEAGE__TAGS__JOB__A": "b"}, False),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:1", "OPENLINEAGE_DISABLED": "True "}, False),
    ],
)
def test_what_counts_as_configured(environment: dict[str, str], expected: bool) -> None:
    assert lineage.is_configured(environment) is expected


def test_a_configuration_without_a_transport_is_one_warning(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(shop / "nowhere.yml"))
    found = target(shop).run(DAYS)
    assert found.warnings == ("OpenLineage took 0 of 2 events: its configuration names no transport",)


def test_a_client_that_is_not_installed_is_one_warning(
    shop: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "reslice.lineage_events", None)
    monkeypatch.delattr(reslice, "lineage_events", raising=False)
    found = target(shop).run(DAYS)
    (warning,) = found.warnings
    assert "pip install 'reslice[openlineage]'" in warning
    assert (found.outcome, server.events) == ("published", [])
    with pytest.raises(Stopped) as stopped:
        target(shop).run("2026-01-03")
    assert stopped.value.run is not None and warning in stopped.value.run.warnings


# Nothing that a server does changes a run


def test_a_server_that_never_answers_costs_a_few_seconds_and_a_warning(shop: Path, server: Server) -> None:
    server.is_silent = True
    began = time.monotonic()
    found = target(shop).run(DAYS)
    seconds = time.monotonic() - began
    assert found.outcome == "published"
    assert found.warnings == ("OpenLineage took 0 of 2 events: no more within 4 seconds",)
    assert lineage.WAIT_SECONDS <= seconds < lineage.WAIT_SECONDS + 20  # it would wait for ever
    assert rows(shop) == AFTER


def test_a_server_that_never_answers_does_not_keep_a_process_from_ending(shop: Path, server: Server) -> None:
    server.is_silent = True
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", RUN, "-C", str(shop), "run", "daily_orders", DAYS], capture_output=True, text=True
    )
    assert time.monotonic() - began < lineage.WAIT_SECONDS + 20
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning: OpenLineage took 0 of 2 events: no more within 4 seconds" in done.stdout.splitlines()


def test_the_database_is_free_while_a_run_waits_for_a_server(
    shop: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    free: list[bool] = []

    def end(self: Any, seconds: float) -> str:
        free.append(rows(shop) == AFTER)
        return ""

    monkeypatch.setattr(lineage._Sender, "end", end)
    target(shop).run(DAYS)
    assert free == [True], "the file can be opened, and the rows are committed"


@pytest.mark.parametrize("status", [400, 403, 500, 503])
def test_a_server_that_answers_with_an_error_is_a_warning(
    shop: Path, server: Server, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(lineage, "WAIT_SECONDS", 1.0)
    server.status = status
    found = target(shop).run(DAYS)
    assert found.outcome == "published"
    (warning,) = found.warnings
    said = (
        f"HTTPError, status {status}" if status < 500 else "no more within 1 seconds"
    )  # the client tries again on 5xx
    assert warning == f"OpenLineage took 0 of 2 events: {said}"
    assert rows(shop) == AFTER


def test_a_server_that_is_not_there_is_a_warning_without_the_password(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", f"http://anna:{SECRET}@127.0.0.1:{port}")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 0}')
        found = target(shop).run(DAYS)
    assert found.warnings == ("OpenLineage took 0 of 2 events: ConnectionError",)
    assert found.outcome == "published"


def test_a_transport_that_cannot_be_made_is_a_warning(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "no.such.Transport")
    assert target(shop).run(DAYS).warnings == ("OpenLineage took 0 of 2 events: ImportError",)


def test_an_event_that_cannot_be_made_is_a_warning(shop: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from reslice import lineage_events

    def broken(*_arguments: Any) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(lineage_events, "event", broken)
    found = target(shop).run(DAYS)
    assert (found.outcome, found.warnings) == ("published", ("OpenLineage was not told: ValueError",))


def test_events_hold_no_secret(shop: Path, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the key of the server, nor a path out of the environment, nor a token in the folder's git remote."""
    hidden = tmp_path / SECRET
    (shop / "shop.duckdb").rename(tmp_path / "moved.duckdb")
    hidden.mkdir()
    (tmp_path / "moved.duckdb").rename(hidden / "shop.duckdb")
    contract = shop / "reslice.yml"
    contract.write_text(
        contract.read_text().replace("duckdb:///shop.duckdb", '"duckdb:///${env:SHOP_FOLDER}/shop.duckdb"')
    )
    monkeypatch.setenv("SHOP_FOLDER", f"../{SECRET}")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", SECRET)
    git = tmp_path / "home" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f'[remote "origin"]\n\turl = https://token:{SECRET}@git.test/shop.git\n')
    target(shop).run(DAYS)
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}", "the server itself is told its key"
    assert server.types == ["START", "COMPLETE"]
    assert SECRET not in json.dumps(server.events)
    assert server.events[0]["outputs"][0]["namespace"] == "duckdb:///${env:SHOP_FOLDER}/shop.duckdb"


def test_the_command_line_prints_nothing_of_the_client(shop: Path, server: Server) -> None:
    """Neither its log nor its warnings: stderr stays empty, also while it tries again."""
    server.status = 400
    done = subprocess.run(
        [sys.executable, "-c", RUN, "-C", str(shop), "run", "daily_orders", DAYS, "--json"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["warnings"] == ["OpenLineage took 0 of 2 events: HTTPError, status 400"]
