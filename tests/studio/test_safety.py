"""Who may ask the studio what, and what it never says."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reslice.studio.jobs import Jobs
from tests.conformance.databases import Database, DuckDBDatabase, only
from tests.studio.served import Served, served
from tests.studio.shop import UNCONTROLLED, Shop

PATHS = ("", "index.json", "target/daily_orders", "target/daily_orders.json", "run/r-0001", "static/studio.css")
HOSTILE = "<script>alert(1)</script>\"'&\u202etxt.exe\x01" + "long" * 180


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = DuckDBDatabase(tmp_path_factory.mktemp("shop"))
    shop = Shop(database)
    shop.fill(days=31)
    shop.target().run("2025-11")
    database.let_go()
    with served(shop.contract) as site:
        yield site


def asked(site: Served, path: str, *, method: str = "GET", host: str | None = None, hosts: int = 1) -> tuple[int, str]:
    """Ask with a Host header of one's own; return the status and the text."""
    home = urlsplit(site.address)
    connection = http.client.HTTPConnection("127.0.0.1", home.port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    for _ in range(hosts):
        connection.putheader("Host", host if host is not None else f"127.0.0.1:{home.port}")
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_a_wrong_token_or_none_is_a_page_that_is_not_there(site: Served) -> None:
    token = urlsplit(site.address).path
    for path in (
        "/",
        "/index.json",
        token.rstrip("/") + "x/",
        token[:-2] + "/",
        "/static/studio.css",
        "//",
        f"/{token}",
    ):
        status, text = asked(site, path)
        assert (status, text) == (404, "not found\n"), path


def test_the_token_is_different_every_time_and_long_enough(site: Served) -> None:
    assert len(urlsplit(site.address).path.strip("/")) >= 32


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]x"]
)
def test_another_host_is_not_answered(site: Served, host: str) -> None:
    port = urlsplit(site.address).port
    status, text = asked(site, urlsplit(site.address).path, host=host.format(port=port))
    assert status == 400 and "daily_orders" not in text


def test_two_hosts_are_not_answered(site: Served) -> None:
    assert asked(site, urlsplit(site.address).path, hosts=2)[0] == 400


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_the_names_of_this_machine_are_answered(site: Served, host: str) -> None:
    port = urlsplit(site.address).port
    assert asked(site, urlsplit(site.address).path, host=host.format(port=port))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_pages_are_only_looked_at(site: Served, method: str) -> None:
    for path in PATHS:
        assert asked(site, urlsplit(site.address).path + path, method=method)[0] == 405, path


def test_head_has_no_text(site: Served) -> None:
    assert asked(site, urlsplit(site.address).path, method="HEAD") == (200, "")


def test_head_begins_no_comparison(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    monkeypatch.setattr(Jobs, "start", lambda *words: begun.append(words))
    assert asked(site, urlsplit(site.address).path + "target/daily_orders/status", method="HEAD") == (405, "")
    assert begun == []


@pytest.mark.parametrize("path", [*PATHS, "nonsense", "target/none", "run/r-9999", "static/../app.py"])
def test_every_answer_says_what_a_browser_may_do_with_it(site: Served, path: str) -> None:
    headers = site.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["server"] is None


def test_files_beside_the_pages_are_those_that_are_named(site: Served) -> None:
    for path in ("static/../app.py", "static/%2e%2e/app.py", "static/app.py", "static/", "static//etc/passwd"):
        assert site.get(path).status == 404, path


def test_no_page_has_a_style_or_a_script_in_it(site: Served) -> None:
    for path in ("", "target/daily_orders", "run/r-0001", "target/none", "target/daily_orders?from=x"):
        text = site.get(path).text
        assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|javascript:", text), path


def test_nothing_of_another_place_is_asked_for(site: Served) -> None:
    for path in ("", "target/daily_orders", "run/r-0001"):
        places = re.findall(r"(?:src|href|action)=\"([^\"]*)\"", site.get(path).text)
        token = urlsplit(site.address).path
        assert places and all(each.startswith((token, "#")) for each in places), path


def test_text_of_the_database_and_of_the_contract_is_text(engine: Database) -> None:
    shop = Shop(engine)
    shop.declare({HOSTILE: UNCONTROLLED})
    channel = HOSTILE.replace("\x01", "")[:900]
    shop.order(1, "2026-01-01", channel, 100)
    shop.target(HOSTILE).run("2026-01-01", reason=HOSTILE)
    engine.execute("UPDATE reslice.runs SET actor = ?", [HOSTILE])
    engine.let_go()
    with served(shop.contract) as site:
        first = site.get()
        assert first.status == 200
        found = re.search(r'href="/[^/]+/(target/~[0-9a-f]{16})"', first.text)
        assert found is not None, "the name of the target has an address of its own"
        for path in ("", found[1], f"{found[1]}?from=2026-01-01", "run/r-0001"):
            text = site.get(path).text
            assert "<script>alert" not in text and "\u202e" not in text and "\x01" not in text, path
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text, path
        twin = site.get(f"{found[1]}.json").json
        assert twin["target"] == HOSTILE and twin["runs"][0]["actor"] == HOSTILE


@pytest.mark.parametrize(
    "query",
    ["from=<script>", "from=2026-01-01&to=\u202e", "range=%00", "state=<b>", "before=-1", "before=9e9", "period=../.."],
)
def test_words_of_an_address_are_text(site: Served, query: str) -> None:
    from urllib.parse import quote

    answer = site.get(f"target/daily_orders?{quote(query, safe='=&%')}")
    assert answer.status == 200
    assert "<script>" not in answer.text.replace("<script src=", "") and "\u202e" not in answer.text


@only("postgresql", "a DuckDB file has no password")
def test_no_secret_is_on_a_page(engine: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(engine)
    monkeypatch.setenv("SHOP_URL", f"{engine.url}&password=s3cret-word")
    shop.fill(days=2)
    shop.target().run("2025-11-01")
    contract = shop.contract
    contract.write_text(contract.read_text().replace(engine.url, "${env:SHOP_URL}"))
    with served(contract) as site:
        for path in PATHS[:-1]:
            answer = site.get(path)
            assert answer.status == 200 and "s3cret" not in answer.text, path


def test_a_fault_of_the_studio_is_told_without_its_insides(
    site: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from reslice.studio.standing import Words

    def fail(*_given: object) -> None:
        raise ZeroDivisionError("secret insides")

    monkeypatch.setattr(Words, "stands", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answer = site.get("target/daily_orders")
    assert [type(site.bugs.pop())] == [ZeroDivisionError]
    assert answer.status == 500
    assert "a bug in reslice: ZeroDivisionError" in answer.text and "secret insides" not in answer.text
    assert len(list(tmp_path.iterdir())) == 1  # the details, for whoever runs it
