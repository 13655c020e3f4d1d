"""JSON answers as text: the same values, and no character that a terminal takes for a command."""

from __future__ import annotations

import json

import pytest

from reslice.report_json import dumped


@pytest.mark.parametrize(
    "hidden", ["\x9b31m", "\x85", "\u2028", "\u202e", "\x7f", "\x1b]0;t\x07", "\U000e0001", "\ud800"]
)
def test_what_is_not_printable_is_escaped_and_read_back_as_it_was(hidden: str) -> None:
    value = {"schema": "reslice/run/1", "key": f"Zürich {hidden} ok\r\n"}
    text = dumped(value, "utf-8")
    assert all(line.isprintable() for line in text.split("\n")) and "Zürich" in text
    assert json.loads(text) == value


def test_what_a_stream_cannot_carry_is_escaped() -> None:
    assert dumped({"key": "Zürich"}, "ascii") == '{\n  "key": "Z\\u00fcrich"\n}'
