"""Check: the rules of the contract, held against what was measured on the staged rows. All failures are told at once.

The engine's word is never taken for a rule: keys, NULLs, minimums and the range are counted on the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Refused, ResliceError
from reslice.values import Check, Checked, ControlLine, Findings, Problem, Staged


def check(engine: Engine, staged: Staged) -> Checked:
    """Return the staged rows as checked; Refused names every rule they break. The target is not touched."""
    findings = engine.inspect(staged)
    contract = staged.contract
    failures = [_failure(contract, staged, problem) for problem in findings.problems]
    failures += [_control_failure(contract, line) for line in findings.controls if not line.ok]
    if failures:
        about = f"{contract.name} for {staged.scope.text}, {staged.scope.words}"
        refused = Refused(about, failures, unchanged=f"{contract.table} is as it was; nothing was written")
        refused.controls = findings.controls
        raise refused
    return Checked(staged, _held(contract, findings), findings.controls, _warnings(findings))


def failed_checks(error: ResliceError) -> tuple[Check, ...]:
    """Return the rules that an error says were broken, as checks that did not hold."""
    return tuple(Check(each.kind, False, "; ".join(each.found), stops=True) for each in error.failures)


def _held(contract: Contract, findings: Findings) -> tuple[Check, ...]:
    """Return the checks that held, as they are told."""
    rows = findings.rows
    held = [
        Check("key_repeated", True, f"{rows} staged rows, {rows} keys"),
        Check("outside_range", True, "every staged row lies in the range"),
        Check("key_null", True, "no grain column is NULL where the contract forbids it"),
        Check("measure_minimum", True, "every measure is there and at or above its minimum"),
        Check("lossy_value", True, "every value fits the target's type exactly"),
    ]
    if contract.controls is not None:
        figures = ", ".join(f"{line.figure} {line.control}" for line in findings.controls)
        held.append(Check("control_differs", True, f"reconciled per slice: {figures}"))
    return tuple(held)


def _warnings(findings: Findings) -> tuple[str, ...]:
    return tuple(
        f"{len(keys)} keys of {column} are equal but for case, outer spaces or Unicode form: "
        + ", ".join(repr(key) for key in keys)
        for column, keys in findings.near_equal
    )


def _a(word: str | None) -> str:
    """Return a word behind its article."""
    is_vowel = word is not None and word[:1].lower() in ("a", "e", "i", "o", "u")
    return f"an {word}" if is_vowel or word == "hour" else f"a {word}"


def _rule(contract: Contract, problem: Problem) -> tuple[str, str, str]:
    """Return what a problem breaks: the rule asked for, the words of what was counted, and the way on."""
    column, source = problem.column, contract.source.name
    fix = f"correct {source}"
    grain = ", ".join(each.name for each in contract.grain)
    measure_line = contract.quote(f"measures.{column}", f"measures: {column}")
    rules: dict[str, Callable[[], tuple[str, str, str]]] = {
        "lossy_value": lambda: (
            f"every value of {column} fits the type of the target",
            "values are NaN or infinite" if problem.is_not_finite else "values would change",
            f"filter NaN and infinity out in {source}, or replace them"
            if problem.is_not_finite
            else f"cast {column} in {source}, or widen the column of the target",
        ),
        "slice_null": lambda: (f"every row has {_a(column)}", "rows have none and belong to no slice", fix),
        "outside_range": lambda: (
            "the source returns rows of the range, and no others",
            "rows lie outside it",
            f"filter by :start and :end in {source}",
        ),
        "slice_off_unit": lambda: (
            contract.quote("slice", f"unit: {contract.slice.unit}"),
            f"rows have {_a(column)} that is not the first moment of {_a(contract.slice.unit)}",
            fix,
        ),
        "key_null": lambda: (
            f"{contract.quote('grain', f'grain: {column}')}; nulls are refused unless it says nulls: allow",
            f"rows have no {column}",
            f"{fix}, or allow it: grain: [{{column: {column}, nulls: allow}}]",
        ),
        "measure_null": lambda: (
            f"{measure_line}; nulls are refused unless it says nulls: allow",
            f"rows have no {column}",
            f"{fix}, or allow it: {column}: {{nulls: allow}}",
        ),
        "measure_minimum": lambda: (
            contract.quote(f"measures.{column}.min", f"measures: {column}: min"),
            f"rows have {_a(column)} below the minimum",
            fix,
        ),
        "key_repeated": lambda: (f"one row per {grain}", "keys are repeated", f"group by {grain} in {source}"),
        "control_rows": lambda: (
            "a control returns one row per slice of the range",
            "",
            f"correct {contract.controls.query.name if contract.controls else source}",
        ),
    }
    return rules[problem.kind]()


def _failure(contract: Contract, staged: Staged, problem: Problem) -> Failure:
    asked, words, after = _rule(contract, problem)
    if problem.kind == "key_repeated":
        nouns = "key is repeated" if problem.count == 1 else "keys are repeated"
        return Failure(problem.kind, asked, (f"{problem.count} {nouns}; {problem.example}",), after)
    if not words:
        return Failure(problem.kind, asked, (problem.example,), after)
    singular = (
        (words.replace("rows have", "row has").replace("rows lie", "row lies").replace("values would", "value would"))
        .replace("values are", "value is")
        .replace("and belong", "and belongs")
    )
    counted = f"{problem.count} {singular if problem.count == 1 else words}"
    return Failure(problem.kind, asked, (f"{counted}; e.g. {problem.example}",), after)


def _control_failure(contract: Contract, line: ControlLine) -> Failure:
    count = len(line.slices_differing)
    slices = ", ".join(line.slices_differing[:5]) + (f" and {count - 5} more" if count > 5 else "")
    asked = f"{line.figure} equals {line.expression} in every slice"
    found = f"the control says {line.figure} {line.control}, the staged rows {line.target}; it differs in {slices}"
    query = contract.controls.query.name if contract.controls else ""
    return Failure("control_differs", asked, (found,), f"correct {contract.source.name} or {query}")
