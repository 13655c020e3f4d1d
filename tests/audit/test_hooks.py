"""The pre-commit hook and the GitHub Action are well formed, and what they run works."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
APPEND = "insert into daily_orders\nselect order_date, count(*) from orders group by order_date;\n"


def read(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.sql").write_text(APPEND)
    (tmp_path / "jobs" / "b.py").write_text("print('no write')\n")
    return tmp_path


def test_the_hook_is_given_files_and_ends_with_one_where_a_write_is_unsafe(jobs: Path) -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    assert {"id", "name", "entry", "language", "files"} <= set(hook) and hook["language"] == "python"
    program, *words = shlex.split(hook["entry"])
    for files, code in ((["jobs/a.sql", "jobs/b.py"], 1), (["jobs/b.py"], 0)):
        command = [str(Path(sys.executable).with_name(program)), *words, *files]
        assert subprocess.run(command, cwd=jobs, capture_output=True, timeout=60, check=False).returncode == code


def test_a_model_of_a_commit_is_read_with_its_project(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
    (tmp_path / "models").mkdir()
    for name in ("a", "b"):
        text = "{{ config(materialized='incremental') }} select day, count(*) as n from x group by day"
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    (hook,) = read(".pre-commit-hooks.yaml")
    program, *words = shlex.split(hook["entry"])
    command = [str(Path(sys.executable).with_name(program)), *words, "models/a.sql"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "models/a.sql:1:" in ended.stdout and "models/b.sql" not in ended.stdout


def test_the_action_has_a_meaning_and_a_default_for_each_input() -> None:
    action = read("action.yml")
    assert {"name", "description", "inputs", "runs"} <= set(action) and action["runs"]["using"] == "composite"
    for name, each in action["inputs"].items():
        assert each["description"] and isinstance(each["default"], str), name
    for step in action["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
        assert "${{" not in step.get("run", ""), "an input is given by the environment: it is no part of the script"


@pytest.mark.parametrize("paths", ["jobs", "jobs/*.sql jobs/b.py"])
def test_the_scripts_of_the_action_run(jobs: Path, paths: str) -> None:
    """All but the set-up: SARIF is written and the step goes on, and the last one ends with the finding."""
    scripts = {step["name"]: step["run"] for step in read("action.yml")["runs"]["steps"] if "run" in step}
    (jobs / "temp" / "reslice" / "bin").mkdir(parents=True)
    (jobs / "temp" / "reslice" / "bin" / "reslice").symlink_to(Path(sys.executable).with_name("reslice"))
    environment = os.environ | {"RUNNER_TEMP": str(jobs / "temp"), "PATHS": paths, "DIALECT": "postgres"}

    def run(name: str) -> subprocess.CompletedProcess[str]:
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts[name]]
        return subprocess.run(words, cwd=jobs, env=environment, capture_output=True, text=True, timeout=60, check=False)

    written = run("Write SARIF")
    assert written.returncode == 0 and '"2.1.0"' in (jobs / "temp" / "reslice.sarif").read_text()
    ended = run("Audit")
    assert ended.returncode == 1 and ended.stdout.startswith("::error file=jobs/a.sql,line=1,")
    environment["PATHS"] = "nothing"
    assert run("Write SARIF").returncode != 0 and run("Audit").returncode == 2
