"""The commands that compute: plan, run and verify."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reslice.cli_commands import Command, affected_option, json_option, scope_options
from reslice.cli_page import check_page, page_option, refuse_dash, with_page
from reslice.cli_session import Session

if TYPE_CHECKING:
    from reslice.plan_file import PlanFile
    from reslice.project import Project
    from reslice.target_handle import TargetHandle
    from reslice.values import Run

OnStep = Callable[[str], None]

_SCOPE_NAMES = ("range", "interval", "again")


@click.command(
    cls=Command,
    examples=(
        "reslice plan daily_orders 2026-01-01..2026-01-02",
        "reslice plan daily_orders 2026-Q1 --exit-code",
        "reslice plan daily_orders 2026-01-02 --out plan.json",
    ),
)
@scope_options
@affected_option
@click.option("--rewrite", is_flag=True, help="As run --rewrite would: every slice is written.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the statements that a run would execute.")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write a plan file.")
@click.option("--exit-code", "changes_count", is_flag=True, help="Exit 1 when something would change.")
@json_option
@click.pass_obj
def plan(session: Session, /, **given: Any) -> int:
    """Show what a run would change, and write nothing.

    RANGE is one slice, such as 2026-01-02, a longer period, such as 2026-01 or 2026-Q1, or A..B with both ends
    included. A failed check exits 3. A guard that would stop a run is shown, and exits 0.
    """
    begin(session, "plan", given)
    _check_scope(given)
    refuse_dash("--out", given["out"])
    project = session.open()
    target = target_of(project, given)
    scope, options = scope_of(given), {name: given[name] for name in ("with_affected", "rewrite")}
    found = session.work(project, lambda on_step: target.plan(**scope, **options, on_step=on_step))
    if given["out"] is not None:
        from reslice import plan_file

        plan_file.write(given["out"], plan_file.of(found, target.contract))
        session.note(f"wrote {given['out']}")
    return answer(session, found, given)


@click.command(
    cls=Command,
    examples=(
        "reslice run daily_orders 2026-01-01..2026-01-02",
        "reslice run --approve r-0042",
        "reslice run plan.json",
    ),
)
@scope_options
@affected_option
@click.option("--approve", metavar="RUN", help="Publish what a stopped run compared: exactly that, or nothing.")
@click.option("--allow", multiple=True, metavar="GUARD[=SLICE]", help="Let a guard pass; needs --reason. Repeatable.")
@click.option("--reason", default="", metavar="TEXT", help="Why; the ledger keeps it.")
@click.option("--rewrite", is_flag=True, help="Write every slice, also those that do not differ.")
@click.option("--per-slice", is_flag=True, help="Publish each slice in a commit of its own.")
@click.option("--wait", metavar="TIME", help="How long to wait for another run, such as 10m, 5s or 0s.")
@page_option
@json_option
@click.pass_obj
def run(session: Session, /, **given: Any) -> int:
    """Replace the slices that differ with recomputed ones, all or none.

    TARGET and RANGE are named, or taken: from the run that --approve or --again names, or from a plan file, with
    reslice run FILE. The same command again changes nothing. What needs a person exits 3.
    """
    begin(session, "run", given)
    if given["allow"] and not given["reason"].strip():
        raise click.UsageError("--allow needs --reason TEXT: the ledger keeps why a guard was let pass.")
    file = _plan_file(given)
    if file is None and given["approve"] is None:
        _check_scope(given)
    options = {name: given[name] for name in ("allow", "reason", "rewrite", "per_slice", "with_affected")}
    options |= {"wait": wait_time(given["wait"]), "on_opened": session.learn}
    check_page(given["report"])
    project = session.open()
    if file is None:
        _refuse_scope_of_a_plan_file(project, given)
    work = _run_call(project, given, file, options)
    found = with_page(session, project, given["report"], lambda: session.work(project, work))
    return answer(session, found, given)


@click.command(
    cls=Command,
    examples=(
        "reslice verify daily_orders 2026-01-01..2026-01-02",
        "reslice verify daily_orders 2025 --record",
    ),
)
@scope_options
@click.option("--record", is_flag=True, help="Add the answer to the ledger.")
@json_option
@click.pass_obj
def verify(session: Session, /, **given: Any) -> int:
    """Tell whether the source is repeatable and equal to the target.

    The source is evaluated twice and compared with the target; exits 1 when an answer is no. Nothing
    is written, unless --record adds the answer to the ledger.
    """
    begin(session, "verify", given)
    _check_scope(given)
    project = session.open()
    target = target_of(project, given)
    scope = scope_of(given)
    found = session.work(project, lambda on_step: target.verify(**scope, record=given["record"], on_step=on_step))
    return answer(session, found, given)


def begin(session: Session, command: str, given: dict[str, Any]) -> None:
    """Take note of the command, and refuse words that say nothing or say the same thing twice."""
    scope = " ".join(given["interval"]) if given["interval"] is not None else given["range"]
    session.begin(command, is_json=given["is_json"], target=given["target"], range=scope)
    for name in ("target", *_SCOPE_NAMES, "approve"):
        if given.get(name) == "":
            raise click.UsageError(f"{_shown_name(name)} is empty.")
    said = [name for name in (*_SCOPE_NAMES, "approve") if given.get(name) is not None]
    if len(said) > 1:
        raise click.UsageError(f"{' and '.join(map(_shown_name, said))} both say which slices; give one of them.")


def _shown_name(name: str) -> str:
    return name.upper() if name in ("target", "range") else f"--{name}"


def _check_scope(given: dict[str, Any]) -> None:
    """Refuse a command that does not say which table and which slices."""
    if given["again"] is not None:
        return
    if given["target"] is None:
        raise click.UsageError("TARGET is missing.")
    if given["range"] is None and given["interval"] is None:
        raise click.UsageError("RANGE is missing: one slice, such as 2026-01-02, or A..B with both ends included.")


def target_of(project: Project, given: dict[str, Any]) -> TargetHandle:
    """Return the target that is named, or the one of the earlier run that is."""
    name = given["target"] if given["target"] is not None else project.show(given["again"]).target
    return project.target(name)


def scope_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return what says which slices are meant."""
    return {name: given[name] for name in _SCOPE_NAMES}


def _plan_file(given: dict[str, Any]) -> PlanFile | None:
    """Return the plan file when the only argument is one: a file that is named .json or says so itself."""
    if given["target"] is None or any(given[name] is not None for name in (*_SCOPE_NAMES, "approve")):
        return None
    from reslice import plan_file

    path = Path(given["target"])
    if path.suffix == ".json" or plan_file.is_plan_file(path):
        return plan_file.read(path)
    return None


def _refuse_scope_of_a_plan_file(project: Project, given: dict[str, Any]) -> None:
    """Refuse a plan file beside a RANGE, or what stands in for one: the file says which slices."""
    from reslice import plan_file
    from reslice.errors import Failure, Misused

    name = given["target"]
    if name is None or name in project.targets or not plan_file.is_plan_file(Path(name)):
        return
    said = next(each for each in (*_SCOPE_NAMES, "approve") if given[each] is not None)
    found = f"{name} is a plan file, which says itself which slices; {_shown_name(said)} is given as well"
    failure = Failure("usage", "a plan file alone", (found,), f"reslice run {shlex.quote(name)}")
    raise Misused(name, [failure], unchanged="nothing was read or written")


def _run_call(
    project: Project, given: dict[str, Any], file: PlanFile | None, options: dict[str, Any]
) -> Callable[[OnStep], Run]:
    """Return the one call that the command means."""
    if file is not None:
        return lambda on_step: project.run(approve=file, **options, on_step=on_step)
    named = {"approve": given["approve"], "again": given["again"]}
    if given["target"] is None:
        return lambda on_step: project.run(**named, **options, on_step=on_step)
    target = project.target(given["target"])
    scope = {"range": given["range"], "interval": given["interval"]}
    return lambda on_step: target.run(**scope, **named, **options, on_step=on_step)


def wait_time(text: str | None) -> timedelta | None:
    """Read a time as the contract file writes it."""
    if text is None:
        return None
    from reslice.given import read_wait

    try:
        return read_wait(text)
    except ValueError as error:
        raise click.UsageError(f"--wait: {error}") from error


def answer(session: Session, found: Run, given: dict[str, Any]) -> int:
    """Print the answer in the form that was asked for and return its exit code."""
    from reslice.report_json import as_json, exit_code

    code = exit_code(found, changes_count=given.get("changes_count", False))
    session.answer(found, code)
    way_on = _way_on(found, given)
    if session.is_json:
        sql = {"sql": [*found.sql]} if given.get("with_sql") else {}
        session.say_json(as_json(found, place=session.place, way_on=way_on, code=code) | sql)
        return code
    from reslice.report import run_text, sql_text

    session.say(sql_text(found) if given.get("with_sql") else run_text(found, place=session.place, way_on=way_on))
    return code


def _way_on(found: Run, given: dict[str, Any]) -> str:
    """Return the next command: the plan file that was just written is run as it is."""
    from reslice.next_command import next_command

    if given.get("out") is not None and found.diff is not None and found.diff.differing:
        return f"reslice run {shlex.quote(str(given['out']))}"
    return next_command(found)
