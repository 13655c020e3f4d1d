"""Every rule has a page, its bad example is found by it, and its good example by no rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from reslice.audit.rule import Example, Rule, rules
from reslice.audit.runner import audit

EXAMPLES = [(rule, example) for rule in rules().values() for example in rule.examples]


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)
def test_a_rule_has_a_page(rule: Rule) -> None:
    assert len(rule.why) > 80
    assert {example.is_bad for example in rule.examples} == {True, False}
    assert rule.help and rule.checks


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda each: getattr(each, "code", ""))
def test_examples_are_judged_as_they_are_shown(tmp_path: Path, rule: Rule, example: Example) -> None:
    found = audit([_written(tmp_path, example)], None if example.kind.startswith(("dbt", "python")) else example.kind)
    assert not found.unparsed
    codes = {each.code for each in found.findings or found.unknown}  # some rules say only that it is not known
    assert codes == ({rule.code} if example.is_bad else set())


def _written(folder: Path, example: Example) -> Path:
    """Write an example as a file, or as the one model of a dbt project for an adapter, `dbt.postgres`."""
    tool, _, adapter = example.kind.partition(".")
    if tool == "dbt":
        (folder / "models").mkdir()
        (folder / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
        (folder / "profiles.yml").write_text(
            f"shop:\n  target: dev\n  outputs:\n    dev: {{type: {adapter or 'duckdb'}}}\n"
        )
        (folder / "models" / "daily_orders.sql").write_text(example.text)
        return folder
    file = folder / ("job.py" if tool == "python" else "job.sql")
    file.write_text(example.text)
    return file
