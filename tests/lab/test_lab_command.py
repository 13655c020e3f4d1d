"""`reslice lab`: what it prints, what it answers and to whom, and how it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from reslice import serving
from reslice.lab import PAGE
from tests.lab.command import RESLICE, serving_lab


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving_lab() as (_, address):
        yield int(address.removeprefix("http://127.0.0.1:").removesuffix("/"))


def ask(port: int, method: str, path: str, host: str | None = None) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        connection.endheaders()
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_the_address_comes_first_and_the_file_after_it() -> None:
    with serving_lab() as (process, address):
        assert address.startswith("http://127.0.0.1:") and address.endswith("/")
        assert process.stdout is not None
        assert process.stdout.readline() == f"the same page as a file: {PAGE}\n"


def test_the_one_page_is_served_with_a_policy_and_to_head_without_its_text(port: int) -> None:
    response, body = ask(port, "GET", "/")
    assert (response.status, body) == (200, PAGE.read_bytes())
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and policy.endswith("frame-ancestors 'none'")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    head, nothing = ask(port, "HEAD", "/")
    assert (head.status, nothing) == (200, b"")
    assert head.headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize("path", ["/favicon.ico", "/states.json", "/../states.json", "/?x", "/index.html"])
def test_anything_else_is_not_found(port: int, path: str) -> None:
    response, _ = ask(port, "GET", path)
    assert response.status == 404


def test_nothing_is_taken(port: int) -> None:
    for method in ("POST", "PUT", "DELETE"):
        response, _ = ask(port, method, "/")
        assert response.status >= 400


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}"])
def test_a_foreign_name_that_leads_here_is_not_answered(port: int, host: str) -> None:
    response, body = ask(port, "GET", "/", host.format(port=port))
    assert response.status == 421
    assert b"<html" not in body


def test_the_other_name_of_this_machine_is_answered(port: int) -> None:
    response, _ = ask(port, "GET", "/", f"localhost:{port}")
    assert response.status == 200


def test_it_listens_on_the_loopback_alone() -> None:
    with serving.listen(0, "lab") as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_client_that_goes_away_is_not_worth_a_word() -> None:
    with serving_lab() as (process, address):
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.sendall(b"GET / HTTP/1.1\r\n")
        assert ask(port, "GET", "/")[0].status == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert err == "note: Ctrl-C ends it\nnote: ended\n"
    assert process.returncode == 0


def test_a_port_that_is_taken_is_said_in_four_parts() -> None:
    with serving.listen(0, "lab") as listener:
        taken = listener.getsockname()[1]
        command = [str(RESLICE), "lab", "--no-browser", "--port", str(taken)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"misused[usage]: lab --port {taken}\n"
        f"  asked:      port {taken} of this machine\n"
        f"  found:      Address already in use: 127.0.0.1:{taken}\n"
        "  unchanged:  nothing was read or written\n"
        "  next:       reslice lab --port 0\n"
    )


def test_a_port_that_cannot_be_is_misuse() -> None:
    done = subprocess.run([str(RESLICE), "lab", "--port", "70000"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("misused[usage]: reslice lab\n")


def test_no_browser_is_looked_for_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert serving.open_browser("http://127.0.0.1:1/") is False


def test_the_browser_is_given_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    given: list[str] = []

    def shown(address: str) -> bool:
        given.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", shown)
    monkeypatch.setenv("DISPLAY", ":0")
    assert serving.open_browser("http://127.0.0.1:1/") is True
    assert given == ["http://127.0.0.1:1/"]


def test_it_is_there_before_anything_heavy_is_loaded() -> None:
    began = time.monotonic()
    with serving_lab():
        assert time.monotonic() - began < 10  # a second on a machine that does nothing else
    script = (
        "import sys; import reslice.cli_lab, reslice.lab.server;"
        "heavy = {'duckdb', 'jinja2', 'pydantic', 'rich', 'starlette'} & {name.split('.')[0] for name in sys.modules};"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
