"""The command `studio` as a process: its address, its end, and what it says where it cannot begin."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.databases import DuckDBDatabase
from tests.studio.shop import Shop
from tests.studio.test_status import slow

RESLICE = Path(sys.executable).with_name("reslice")
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/([\w-]{32,})/\n")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(DuckDBDatabase(tmp_path))
    shop.fill(days=10)
    shop.target().run("2025-11-01..2025-11-05")
    shop.database.let_go()
    return shop


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(shop: Shop) -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def started(*options: str, code: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code] if code else [str(RESLICE)]
        environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        process = subprocess.Popen(
            [*command, "-C", str(shop.folder), "studio", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def address_of(process: subprocess.Popen[str]) -> str:
    """Return the address that stands alone on the first line."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 60)[0], "no line within a minute"
    line = process.stdout.readline()
    assert ADDRESS.fullmatch(line), line
    return line.strip()


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_prints_an_address_that_answers_until_it_is_asked_to_stop(start: Start, number: int, code: int) -> None:
    process = start("--no-browser")
    address = address_of(process)
    assert "daily_orders" in read(address)
    process.send_signal(number)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert time.monotonic() - began < 5  # a second, on a machine that is not busy
    assert out == "" and err == "note: Ctrl-C ends it\nnote: ended\n"


def test_every_start_has_a_token_of_its_own(start: Start) -> None:
    tokens = {address_of(start("--no-browser")).split("/")[3] for _ in range(2)}
    assert len(tokens) == 2


def test_it_listens_on_this_machine_alone(start: Start) -> None:
    process = start("--no-browser")
    port = int(address_of(process).split(":")[2].split("/")[0])
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {line[1] for line in listening if line[3] == "0A" and int(line[1].split(":")[1], 16) == port}
    assert ours == {f"0100007F:{port:04X}"}
    six = Path("/proc/net/tcp6")
    if six.exists():
        found = [line.split()[1] for line in six.read_text().splitlines()[1:] if line.split()[3] == "0A"]
        assert not [each for each in found if int(each.split(":")[1], 16) == port]


def test_it_ends_at_once_also_while_it_compares(shop: Shop, start: Start) -> None:
    slow(shop)
    process = start("--no-browser")
    address = address_of(process)
    page = read(f"{address}target/daily_orders/status?range=2025-11-01")
    follow = re.search(r'data-follow="([^"]+)"', page)
    assert follow is not None
    home = address.rsplit("/", 2)[0]
    while json.loads(read(f"{home}{follow[1]}"))["step"] != "staging":
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert time.monotonic() - began < 5


def test_a_port_that_is_taken_is_said_in_four_parts(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("--no-browser", "--port", str(port))
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert all(f"  {part}:" in err for part in ("asked", "found", "unchanged", "next"))
    assert f"127.0.0.1:{port}" in err and "studio --port 0" in err and "Traceback" not in err


def test_without_the_extra_it_says_how_to_install_it(start: Start) -> None:
    hidden = (
        "import importlib.util, sys; found = importlib.util.find_spec;"
        "absent = ('starlette', 'uvicorn');"
        "importlib.util.find_spec = lambda name, *more: None if name in absent else found(name, *more);"
        "from reslice.cli import main; sys.exit(main())"
    )
    process = start("--no-browser", code=hidden)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "starlette and uvicorn are not installed" in err and "pip install 'reslice[studio]'" in err


def test_a_mistake_in_the_contract_is_said_before_anything_is_served(shop: Shop, start: Start) -> None:
    shop.contract.write_text("version: 1\n")
    process = start("--no-browser")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "") and "misused[contract]" in err


def test_the_address_as_json(start: Start) -> None:
    process = start("--json")
    assert process.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        text += process.stdout.readline()
    found = json.loads(text)
    assert list(found) == ["schema", "address", "export", "files_copied", "error", "next", "exit_code"]
    assert found["schema"] == "reslice/studio/1" and "daily_orders" in read(found["address"])


def test_the_place_of_the_project_is_in_the_commands(shop: Shop, start: Start) -> None:
    address = address_of(start("--no-browser"))
    page = read(f"{address}target/daily_orders?from=2025-11-02")
    assert f"reslice -C {shop.folder} plan daily_orders 2025-11-02" in page
