"""The steps of the example's workflow, in their order, in checkouts of a shop's repository.

The test plays the part of the service: it checks out, keeps the artifact, and answers for its `gh`. The `run:` lines
are executed as the file has them, with the shell the file asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.schedulers import shops

WORKFLOW = YAML(typ="safe").load(shops.EXAMPLES / "ci" / "backfill.yml")
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
GH = """#!/bin/sh
echo "$*" >> "$SERVICE/asked"
case "$1 $2" in
"run list") echo 4711 ;;
"run download") [ "$3" = 4711 ] && cp "$SERVICE/plan.json" . ;;
esac
"""
VALUES = {
    "${{ github.token }}": "a token",
    "${{ github.event.pull_request.head.sha }}": "c0ffee",
}


class Service:
    """A repository of the shop, and a service that runs the jobs of its workflow in fresh checkouts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = shops.make_shop(folder / "warehouse")
        self.repository = copytree(shops.EXAMPLES / "shop", folder / "repository")
        self.kept = folder / "kept"
        self.kept.mkdir()
        programs = folder / "programs"
        programs.mkdir()
        (programs / "gh").write_text(GH)
        (programs / "gh").chmod(0o755)
        self.path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"

    def backfill(self, target: str, range: str) -> None:
        (self.repository / "backfill").write_text(f"{target} {range}\n")

    def job(self, name: str) -> tuple[int, str]:
        """Run the steps of a job; return the exit code of the first that fails, or 0, and what was said."""
        checkout = copytree(self.repository, self.folder / f"checkout-{len(list(self.folder.iterdir()))}")
        said = ""
        for step in WORKFLOW["jobs"][name]["steps"]:
            if str(step.get("uses", "")).startswith("actions/upload-artifact@"):
                (self.kept / "plan.json").write_bytes((checkout / step["with"]["path"]).read_bytes())
            if "run" not in step:
                continue
            ended = subprocess.run(
                [*BASH, step["run"]],
                cwd=checkout,
                env=self.environment(step),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            said += ended.stdout + ended.stderr
            if ended.returncode:
                return ended.returncode, said
        return 0, said

    def environment(self, step: dict[str, Any]) -> dict[str, str]:
        declared = {name: VALUES[value] for name, value in step.get("env", {}).items()}
        summary = str(self.folder / "summary.md")
        assert WORKFLOW["env"] == {"SHOP_DATABASE": "duckdb:////srv/shop/shop.duckdb"}
        more = {**declared, "PATH": self.path, "SERVICE": str(self.kept), "GITHUB_STEP_SUMMARY": summary}
        return shops.variables(self.warehouse, **more)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    made = Service(tmp_path)
    made.backfill("daily_orders", "2026-01-05..2026-01-06")
    return made


EXPECTED = [("2026-01-05", "store", 1, 500), ("2026-01-05", "web", 2, 2700), ("2026-01-06", "web", 1, 300)]


def test_the_jobs_are_for_the_review_and_for_the_merge_and_ask_for_pipefail() -> None:
    assert WORKFLOW["on"]["pull_request"] == {
        "types": ["opened", "synchronize", "reopened", "closed"],
        "paths": ["backfill"],
    }
    assert WORKFLOW["defaults"]["run"]["shell"] == "bash"
    conditions = {name: job["if"] for name, job in WORKFLOW["jobs"].items()}
    assert list(conditions) == ["plan", "run"]
    assert (
        "action != 'closed'" in conditions["plan"] and "head.repo.full_name == github.repository" in conditions["plan"]
    )
    assert "action == 'closed'" in conditions["run"] and "merged" in conditions["run"]


def test_what_was_reviewed_is_what_is_published(service: Service) -> None:
    code, said = service.job("plan")
    assert code == 0, said
    assert shops.rows(service.warehouse, "daily_orders") == []
    assert "planned: daily_orders for 2026-01-05..2026-01-06" in (service.folder / "summary.md").read_text()
    assert json.loads((service.kept / "plan.json").read_text())["schema"] == "reslice/plan-file/1"

    code, said = service.job("run")
    assert code == 0, said
    assert shops.rows(service.warehouse, "daily_orders") == EXPECTED
    assert (service.kept / "asked").read_text().splitlines() == [
        "run list --workflow backfill --commit c0ffee --status success --limit 1 --json databaseId --jq .[].databaseId",
        "run download 4711 --name plan",
    ]

    code, said = service.job("run")
    assert code == 0 and "unchanged r-0002" in said
    assert shops.rows(service.warehouse, "daily_orders") == EXPECTED


def test_the_merge_is_the_consent_to_the_guards_the_review_saw(service: Service) -> None:
    shops.execute(service.warehouse, "INSERT INTO daily_orders VALUES ('2026-01-07', 'web', 3, 4000)")
    service.backfill("daily_orders", "2026-01-07")
    code, said = service.job("plan")
    assert code == 0 and "empty_slice" in said
    assert service.job("run")[0] == 0
    assert shops.rows(service.warehouse, "daily_orders") == []


def test_a_target_that_moved_after_the_review_is_not_overwritten(service: Service) -> None:
    assert service.job("plan")[0] == 0
    shops.execute(service.warehouse, "INSERT INTO daily_orders VALUES ('2026-01-06', 'web', 1, 299)")
    code, said = service.job("run")
    assert code == 3 and "refused[" in said
    assert shops.rows(service.warehouse, "daily_orders") == [("2026-01-06", "web", 1, 299)]


def test_orders_that_came_in_after_the_review_are_not_published_unseen(service: Service) -> None:
    assert service.job("plan")[0] == 0
    shops.execute(service.warehouse, "INSERT INTO orders VALUES (99, '2026-01-06 09:00:00+00', 'web', 1)")
    code, said = service.job("run")
    assert code == 3 and "refused[" in said
    assert shops.rows(service.warehouse, "daily_orders") == []


def test_a_contract_that_changed_after_the_review_is_refused(service: Service) -> None:
    assert service.job("plan")[0] == 0
    source = service.repository / "sql" / "daily_orders.sql"
    source.write_text(source.read_text().replace("sum(amount_cents)", "max(amount_cents)"))
    code, said = service.job("run")
    assert code == 3 and "refused[contract_changed]" in said
    assert shops.rows(service.warehouse, "daily_orders") == []


def test_a_plan_that_is_refused_fails_the_review(service: Service) -> None:
    service.backfill("weekly_orders", "2026-01-06..2026-01-07")
    code, said = service.job("plan")
    assert code == 3 and "refused[range_off_unit]" in said
    assert not (service.kept / "plan.json").exists()
