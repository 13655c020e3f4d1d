"""Which files are read: by suffix below folders, once each, and never in silence left out where they cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reslice.audit.files import SIZE_MAX, Kind, files_of, text_of
from reslice.audit.finding import Unparsed
from reslice.audit.runner import audit
from reslice.audit.text import Text

ALL = frozenset(Kind)


def written(path: Path, text: str | bytes = "select 1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def named(folder: Path, *paths: Path) -> list[tuple[str, str]]:
    """Return what paths lead to, below a folder, with its kind."""
    return [(str(each.path.relative_to(folder)), each.kind) for each in files_of(paths, ALL).sources]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_sql_and_python_below_a_folder_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b/two.sql", "a/one.SQL", "a/job.py", "a/readme.md", "a/data.csv"):
        written(tmp_path / name)
    assert named(tmp_path, tmp_path) == [("a/job.py", "python"), ("a/one.SQL", "sql"), ("b/two.sql", "sql")]


def test_a_kind_that_nothing_reads_is_left_out(tmp_path: Path) -> None:
    written(tmp_path / "job.py")
    written(tmp_path / "job.sql")
    assert [each.path.name for each in files_of([tmp_path], {Kind.SQL}).sources] == ["job.sql"]


def test_folders_that_tools_fill_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    for folder in (".git", ".venv", "node_modules", "own/__pycache__"):
        written(tmp_path / folder / "x.sql")
    written(tmp_path / "env" / "lib" / "x.py")
    written(tmp_path / "env" / "pyvenv.cfg", "")
    written(tmp_path / "own" / "x.sql")
    assert named(tmp_path, tmp_path) == [("own/x.sql", "sql")]
    assert named(tmp_path, tmp_path / ".git") == [(".git/x.sql", "sql")]


def test_a_folder_called_target_is_left_out_in_a_dbt_project_alone(tmp_path: Path) -> None:
    written(tmp_path / "jobs" / "target" / "x.sql")
    written(tmp_path / "shop" / "dbt_project.yml", "name: shop")
    written(tmp_path / "shop" / "target" / "run" / "x.sql")
    written(tmp_path / "shop" / "dbt_packages" / "p" / "models" / "x.sql")
    assert named(tmp_path, tmp_path) == [("jobs/target/x.sql", "sql"), ("shop", "dbt")]


def test_a_dbt_project_is_one_source_and_what_lies_beside_its_models_is_read_as_itself(tmp_path: Path) -> None:
    written(tmp_path / "dbt_project.yml", "name: shop\nmodel-paths: [marts, nested/models]\n")
    for name in ("marts/a.sql", "nested/models/b.sql", "nested/c.sql", "macros/d.sql", "dags/e.py"):
        written(tmp_path / name)
    assert named(tmp_path, tmp_path) == [(".", "dbt"), ("dags/e.py", "python"), ("nested/c.sql", "sql")]


def test_a_model_that_is_named_is_a_part_of_its_project(tmp_path: Path) -> None:
    written(tmp_path / "dbt_project.yml", "name: shop")
    model, other = written(tmp_path / "models" / "a.sql"), written(tmp_path / "models" / "x" / "b.sql")
    job = written(tmp_path / "jobs" / "c.sql")
    found = files_of([model, other.parent, job], ALL).sources
    assert [(each.path, each.kind, each.only) for each in found] == [
        (tmp_path, Kind.DBT, (model, other.parent)),
        (job, Kind.SQL, ()),
    ]
    assert [each.only for each in files_of([model, tmp_path], ALL).sources if each.kind is Kind.DBT] == [()]


def test_a_project_around_the_folder_that_is_worked_in_is_found(here: Path) -> None:
    written(here / "dbt_project.yml", "name: shop")
    written(here / "models" / "a.sql")
    os.chdir(here / "models")
    assert [(str(each.path), each.kind, each.only) for each in files_of([Path("a.sql")], ALL).sources] == [
        ("..", Kind.DBT, (Path("a.sql"),))
    ]


def test_a_project_file_that_is_no_yaml_is_a_project_all_the_same(tmp_path: Path) -> None:
    written(tmp_path / "dbt_project.yml", "name: [")
    written(tmp_path / "models" / "a.sql")
    assert named(tmp_path, tmp_path) == [(".", "dbt")]


def test_a_file_is_read_once_however_often_it_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "a.sql")
    (tmp_path / "link.sql").symlink_to(file)
    again = tmp_path / "x" / ".." / "a.sql"
    (tmp_path / "x").mkdir()
    assert len(files_of([file, tmp_path, file, again, tmp_path / "link.sql"], ALL).sources) == 1


def test_links_that_go_in_a_circle_end(tmp_path: Path) -> None:
    written(tmp_path / "a" / "x.sql")
    (tmp_path / "a" / "b").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "loop.sql").symlink_to(tmp_path / "loop.sql")
    found = audit([tmp_path])
    assert [Path(each.path).name for each in found.unparsed] == ["loop.sql"]
    assert len(found.files) == 2


def test_folders_a_thousand_deep_are_read(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(1100):
        folder = folder / "d"
        folder.mkdir()
    file = written(folder / "x.sql")
    assert [each.path for each in files_of([tmp_path], ALL).sources] == [file]
    file.unlink()
    while folder != tmp_path:  # whoever cleans up goes down by recursion
        folder.rmdir()
        folder = folder.parent


def test_a_pattern_is_matched_and_a_path_that_leads_to_nothing_is_told(here: Path) -> None:
    written(here / "a" / "x.sql")
    written(here / "b" / "y.sql")
    found = files_of([Path("*/*.sql"), Path("c/*.sql"), Path("nothing.sql")], ALL)
    assert [str(each.path) for each in found.sources] == ["a/x.sql", "b/y.sql"]
    assert found.missing == [Path("c/*.sql"), Path("nothing.sql")]


def test_a_file_of_any_suffix_is_read_where_it_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "job.ddl")
    assert named(tmp_path, file) == [("job.ddl", "sql")]
    assert named(tmp_path, tmp_path) == []


# What cannot be read.


@pytest.mark.parametrize(
    ("content", "why", "line"),
    [
        (b"select 1;\nselect '\xff'", "it is not in UTF-8 from this line on", 2),
        ("select 1".encode("utf-16"), "it is not in UTF-8 from this line on", 1),
        (b"select 1\0", "it holds a NUL character, so it is no text", 1),
        (b"-" * (SIZE_MAX + 1), "it has 1,048,577 bytes, and at most 1,048,576 are read", 1),
    ],
    ids=["latin", "utf-16", "nul", "large"],
)
def test_what_is_no_text_is_unparsed_with_the_reason(tmp_path: Path, content: bytes, why: str, line: int) -> None:
    file = written(tmp_path / "x.sql", content)
    found = audit([file])
    assert found.files == (str(file),)
    assert [(each.path, each.line, each.why) for each in found.unparsed] == [(str(file), line, why)]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sql")
    (tmp_path / "gone.sql").symlink_to(tmp_path / "nothing")
    assert [each.why for each in audit([tmp_path]).unparsed] == [
        "it cannot be opened: No such file or directory",
        "it is no regular file",
    ]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Let the file system mind who asks, also where the tests are run by root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("files", "is_blind"),
    [
        ({"a.sql": "selekt (;"}, True),
        ({"a.py": "def ("}, True),
        ({"a.sql": "selekt (;", "b.py": "def ("}, True),
        ({"a.sql": ""}, False),
        ({"a.sql": "-- nothing"}, False),
        ({"a.sql": "selekt (;\nselect 1;"}, False),
        ({"a.sql": "selekt (;", "b.py": ""}, False),
        ({"dbt_project.yml": "name: shop", "models/a.sql": "{{ config(materialized='incremental') }} selekt (;"}, True),
        (
            {
                "dbt_project.yml": "name: shop",
                "models/a.sql": "{{ config(materialized='incremental') }} selekt (;",
                "models/b.sql": "select 1",
            },
            False,
        ),
        ({"dbt_project.yml": "name: shop"}, False),
    ],
)
def test_an_audit_that_could_read_nothing_knows_it(tmp_path: Path, files: dict[str, str], is_blind: bool) -> None:
    for name, text in files.items():
        written(tmp_path / name, text)
    found = audit([tmp_path])
    assert found.is_blind is is_blind
    assert not found.findings


def test_what_may_not_be_read_is_unparsed() -> None:
    with TemporaryDirectory() as name:
        top = Path(name)
        file, folder = written(top / "x.sql"), written(top / "shut" / "y.sql").parent
        top.chmod(0o755)
        file.chmod(0)
        folder.chmod(0)
        with as_nobody():
            files, text = files_of([top], ALL), text_of(file)
        folder.chmod(0o755)
    assert isinstance(text, Unparsed) and [each.path for each in files.sources] == [file]
    assert [(Path(each.path).name, each.why) for each in (*files.unparsed, text)] == [
        ("shut", "the folder cannot be listed: Permission denied"),
        ("x.sql", "it cannot be opened: Permission denied"),
    ]


def test_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    found = text_of(written(tmp_path / "x.sql", b"\xef\xbb\xbfselect 1\r\nfrom a\rwhere true\n"))
    assert isinstance(found, Text)
    assert found.text == "select 1\nfrom a\nwhere true\n"
    assert isinstance(text_of(tmp_path / "none.sql"), Unparsed)
    assert not audit([written(tmp_path / "empty.sql", "")]).unparsed


def test_a_table_is_known_in_every_file_that_is_read_with_it(tmp_path: Path) -> None:
    """The key makes the second run of an append fail: RS102 is said in place of RS101 only where the key is known."""
    job = "insert into daily_orders (order_date, orders) select order_date, count(*) from orders group by order_date;"
    written(tmp_path / "b.sql", job)
    assert {each.code for each in audit([tmp_path], "postgres").findings} == {"RS101"}
    written(tmp_path / "z.sql", "create table daily_orders (order_date date primary key, orders bigint);")
    assert "RS101" not in {each.code for each in audit([tmp_path], "postgres").findings}


def test_a_suffix_of_one_database_tells_the_dialect_and_a_placeholder_is_shown_as_it_was_written(
    tmp_path: Path,
) -> None:
    text = (
        "delete from ${to} where day = '${day}';\n"
        "insert into ${to} select day, sum(n) from t where day = '${day}' group by day;\n"
    )
    written(tmp_path / "nightly.hql", text)
    audited = audit([tmp_path])
    assert audited.guessed == ()
    assert [each.code for each in audited.findings] == ["RS202"]
    assert "in hive" in audited.findings[0].detail
    assert "${to} stays without these rows" in audited.findings[0].detail
    assert audited.findings[0].table == "${to}"
