"""The shape of the code: imports go one way, drivers stay in their engine, one maker of an Approved, small pieces."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "reslice"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the outside in. A module may import from its own layer and from those after it.
LAYERS = [
    [
        "start",
        "cli",
        "cli_bug",
        "cli_commands",
        "cli_look",
        "cli_doctor",
        "cli_prove",
        "cli_restore",
        "cli_status",
        "cli_versions",
        "cli_run",
        "cli_session",
        "stopping",
        "progress",
        "retail",
        "cli_log",
        "cli_init",
        "cli_audit",
        "cli_prove",
        "cli_page",
        "cli_lab",
        "lab",
        "serving",
        "cli_studio",
    ],
    ["studio"],
    [
        "report",
        "report_error",
        "report_json",
        "report_ledger",
        "report_status",
        "report_doctor",
        "report_prove",
        "report_prove_json",
        "report_versions",
        "next_command",
        "layout",
        "target_handle",
        "project",
        "plan_file",
        "writers",
        "page",
        "page_file",
        "page_template",
        "report_init",
        "report_audit",
        "report_sarif",
        "report_prove",
        "report_prove_json",
        "init",
        "prove",
    ],
    ["audit"],
    [
        "run",
        "restore",
        "doctor",
        "series",
        "status",
        "prove",
        "old_versions",
        "verify",
        "consents",
        "given",
        "lineage",
        "lineage_events",
    ],
    ["doctor_table"],
    ["attempt"],
    ["publish", "approve", "compare", "check", "stage"],
    ["engines", "ledger"],
    ["reading"],
    [
        "contract_file",
        "contract_rules",
        "contract_schema",
        "contract_values",
        "contract_yaml",
        "contract_connection",
        "contract_libpq",
    ],
    [
        "fingerprint",
        "totals",
        "profile",
        "health",
        "findings",
        "values",
        "tables",
        "recorded",
        "commands",
        "ranges",
        "range_text",
        "moments",
        "parameters",
        "contract",
        "errors",
    ],
]
LAYER_OF = {name: place for place, names in enumerate(LAYERS) for name in names}

DRIVERS = {
    # where each driver may be imported; the libpq that psycopg brings also reads the URL of a contract
    "duckdb": ("engines/duckdb/",),
    "psycopg": ("engines/postgres/", "contract_libpq.py"),
}

LINES_MAX, FUNCTION_LINES_MAX, PARAMETERS_MAX = 400, 70, 6

EXCEPTIONS = {
    # what crosses a size, and why
    "oracle.py": "the whole example computed again in one file, which imports nothing of reslice",
    "values.py": "every value of the steps, so that one page shows what a run is made of",
    "target_handle.py:run": "the options of the command, one keyword each",
    "restore.py:_staged": "the steps of a restore and what each takes",
}


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the reslice modules that a module imports when it runs; imports for types alone cost and bind nothing."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def piece(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "reslice" and len(parts) > 1 and parts[1] in LAYER_OF else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    assert own in LAYER_OF, f"{own} has no place among the layers"
    for name in imported(ast.parse(path.read_text())):
        other = piece(name)
        if other is not None:
            assert LAYER_OF[other] >= LAYER_OF[own], f"{own} imports {other}, which is further out"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_driver_is_imported_only_in_its_own_engine(path: Path) -> None:
    drivers = {name.split(".")[0] for name in imported(ast.parse(path.read_text()))} & set(DRIVERS)
    assert all(path.relative_to(SOURCE).as_posix().startswith(DRIVERS[driver]) for driver in drivers)


def test_only_approve_makes_an_approved() -> None:
    makers = {
        path.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Approved"
    }
    assert makers == {"approve.py"}


def test_no_exception_is_caught_whole_but_in_main_and_where_a_run_must_not_fail_over_what_is_said_of_it() -> None:
    catchers = {
        path.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) == "Exception")
    }
    assert catchers <= {"cli.py", "cli_page.py", "lineage.py"}


def test_pieces_stay_small() -> None:
    large = {}
    for path in MODULES:
        text = path.read_text()
        if len(text.splitlines()) > LINES_MAX:
            large[path.name] = f"{len(text.splitlines())} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                named = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
                parameters = len([name for name in named if name not in ("self", "cls")])
                if lines > FUNCTION_LINES_MAX or parameters > PARAMETERS_MAX:
                    large[f"{path.name}:{node.name}"] = f"{lines} lines, {parameters} parameters"
    assert set(large) <= set(EXCEPTIONS), {name: size for name, size in large.items() if name not in EXCEPTIONS}
    assert set(EXCEPTIONS) <= set(large), f"no longer large: {set(EXCEPTIONS) - set(large)}"


def test_importing_reslice_loads_no_engine_and_no_library() -> None:
    heavy = "{'duckdb', 'pydantic', 'ruamel', 'rich', 'click'}"
    code = f"import sys, reslice; print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
