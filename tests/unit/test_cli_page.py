"""`--report FILE` on real runs: the same page from run and show, whatever became of the run, and no exit code moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.html_page import Page
from tests.unit.shop import AFTER, BEFORE, CONTRACT, DAYS, RUN, SOURCE, make_shop, rows

from reslice import page
from reslice.cli import main

SECRET = "fox-and-hound"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shop = make_shop(tmp_path / "shop")
    monkeypatch.chdir(shop)
    return shop


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_run_and_show_write_the_same_page(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "daily_orders", DAYS, "--report", "run.html"]) == 0
    out = capsys.readouterr()
    assert out.err == "note: wrote run.html\n" and "run.html" not in out.out
    assert main(["show", "r-0001", "--report", "show.html"]) == 0
    out = capsys.readouterr()
    assert out.out.startswith("published r-0001: ") and out.err == "note: wrote show.html\n"
    assert (shop / "run.html").read_bytes() == (shop / "show.html").read_bytes()
    found = read(shop / "run.html")
    assert found.rows("Groups") == [
        ["- removed", "2026-01-01", "web", "1 -1", "12000 -12000"],
        ["~ changed", "2026-01-02", "web", "1 → 2 +1", "7000 → 19000 +12000"],
        ["~ changed", "2026-01-02", "store", "1", "5200 → 5600 +400"],
    ]
    assert found.rows("Each measure") == [
        ["rows", "4", "3", "-1"],
        ["order_count", "4", "4", "none"],
        ["amount_cents", "28700", "29100", "+400"],
    ]
    assert [row[:2] for row in found.rows("Slices that differed")] == [
        ["2026-01-01", "published"],
        ["2026-01-02", "published"],
    ]
    assert "reslice restore r-0001" in found.text
    assert "DELETE FROM" in found.text and "shop.main.daily_orders" in found.text
    assert main(["run", "daily_orders", DAYS, "--report", "run.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == "r-0002"
    assert "r-0002" in read(shop / "run.html").text, "a page of ours is written over"
    assert [each.name for each in shop.iterdir() if each.name.endswith(".part")] == []


@pytest.mark.parametrize(
    ("range_text", "source", "code", "word"),
    [
        ("2026-01-03", SOURCE, 3, "stopped"),
        (DAYS, SOURCE.replace("sum(amount_cents)", "-sum(amount_cents)"), 3, "refused"),
        (DAYS, SOURCE.replace("sum(amount_cents)", "sum(amount_cents / (order_id - order_id))::BIGINT"), None, ""),
    ],
)
def test_a_run_that_did_not_publish_has_a_page_as_well(
    shop: Path, capsys: pytest.CaptureFixture[str], range_text: str, source: str, code: int | None, word: str
) -> None:
    (shop / "daily.sql").write_text(source)
    found = main(["run", "daily_orders", range_text, "--report", "page.html"])
    assert found in (3, 4) and code in (None, found)
    assert f"{word}[" in capsys.readouterr().err
    text = " ".join(read(shop / "page.html").text.split())
    assert "Why it ended" in text and "target changed no" in text and word in text
    assert "nothing to put back" in text
    assert rows(shop) == BEFORE


def test_an_approved_run_and_a_plan_file_have_pages(shop: Path) -> None:
    assert main(["run", "daily_orders", "2026-01-03"]) == 3
    assert main(["run", "--approve", "r-0001", "--report", "approved.html"]) == 0
    assert "approves r-0001" in " ".join(read(shop / "approved.html").text.split())
    assert main(["plan", "daily_orders", DAYS, "--out", "plan.json"]) == 0
    assert main(["run", "plan.json", "--report", "planned.html"]) == 0
    assert "approves the plan file of" in " ".join(read(shop / "planned.html").text.split())


@pytest.mark.parametrize("command", [["run", "daily_orders", DAYS], ["show", "last"]])
@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("nowhere/page.html", "--report: nowhere is not a folder."),
        ("daily.sql/page.html", "--report: daily.sql is not a folder."),
        ("daily.sql", "--report: daily.sql is there, and reslice did not write it; it is not overwritten."),
        ("dangling.html", "--report: dangling.html is there, and reslice did not write it; it is not overwritten."),
        (".", "'.' is a directory"),
        ("-", "--report: - is no file; the answer itself goes to stdout."),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_the_run(
    shop: Path, capsys: pytest.CaptureFixture[str], command: list[str], file: str, found: str
) -> None:
    (shop / "dangling.html").symlink_to(shop / "gone.html")
    assert main([*command, "--report", file]) == 2
    assert found in capsys.readouterr().err
    assert rows(shop) == BEFORE
    assert (shop / "daily.sql").read_text() == SOURCE


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom the system keeps out")
def test_a_folder_that_may_not_be_written_is_refused(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "closed").mkdir(mode=0o500)
    assert main(["run", "daily_orders", DAYS, "--report", "closed/page.html"]) == 2
    assert "nothing may be written into closed" in capsys.readouterr().err


def test_an_empty_file_is_filled(shop: Path) -> None:
    (shop / "page.html").touch()
    assert main(["run", "daily_orders", DAYS, "--report", "page.html"]) == 0
    assert "r-0001" in read(shop / "page.html").text


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("a bug")])
def test_a_page_that_fails_is_a_warning(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_arguments: object, **_options: object) -> str:
        raise error

    monkeypatch.setattr(page, "page_html", broken)
    assert main(["run", "daily_orders", DAYS, "--report", "page.html"]) == 0
    captured = capsys.readouterr()
    reason = "No space left on device" if isinstance(error, OSError) else "a bug"
    assert captured.err == f"warning: page.html was not written: {reason}\n"
    assert captured.out.startswith("published r-0001: ")
    assert rows(shop) == AFTER
    assert main(["run", "daily_orders", "2026-01-03", "--report", "page.html"]) == 3
    assert capsys.readouterr().err.startswith("warning: page.html was not written: ")
    assert not (shop / "page.html").exists()


def test_a_page_that_is_asked_for_alone_and_fails_is_an_error(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> str:
        raise OSError(28, "No space left on device")

    main(["run", "daily_orders", DAYS])
    capsys.readouterr()
    monkeypatch.setattr(page, "page_html", broken)
    assert main(["show", "last", "--report", "page.html"]) == 2
    assert "page.html: No space left on device" in capsys.readouterr().err


def test_a_run_that_never_was_in_the_ledger_has_no_page(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "reslice.yml").write_text(CONTRACT.replace("table: daily_orders", "table: gone"))
    assert main(["run", "daily_orders", DAYS, "--report", "page.html"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("warning: page.html was not written: the run ended before it stood in the ledger\n")
    assert not (shop / "page.html").exists()


def test_hostile_keys_of_a_real_table_stay_text(shop: Path) -> None:
    hostile = "<script>alert(1)</script>\u202e\U0001f9fe'\""
    literal = hostile.replace("'", "''")
    (shop / "daily.sql").write_text(
        SOURCE.replace("order_date, channel, count", f"order_date, '{literal}' AS channel, count")
    )
    assert main(["run", "daily_orders", DAYS, "--report", "page.html"]) in (0, 3)
    found = read(shop / "page.html")
    assert found.named("script") == []
    assert "<script>alert(1)</script>\\u202e\U0001f9fe'\"" in found.text
    assert "\u202e" not in found.source


def test_no_secret_is_on_a_page(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / SECRET).mkdir()
    (shop / "shop.duckdb").rename(tmp_path / SECRET / "shop.duckdb")
    url = '"duckdb:///${env:SHOP_FOLDER}/shop.duckdb"'
    (shop / "reslice.yml").write_text(CONTRACT.replace("duckdb:///shop.duckdb", url))
    monkeypatch.setenv("SHOP_FOLDER", f"../{SECRET}")
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    assert main(["run", "daily_orders", DAYS, "--report", "page.html"]) == 0
    assert main(["run", "daily_orders", "2026-01-03", "--report", "stopped.html"]) == 3
    for name in ("page.html", "stopped.html"):
        assert SECRET not in (shop / name).read_text(encoding="utf-8")


def test_a_command_without_a_page_does_not_import_what_makes_one(shop: Path) -> None:
    script = f"{RUN.replace('sys.exit(', 'code = (')}; print('jinja2' in sys.modules, code, file=sys.stderr)"
    for words, imported in ((["run", "daily_orders", DAYS], False), (["show", "last", "--report", "page.html"], True)):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
        assert done.stderr.splitlines()[-1] == f"{imported} 0"
