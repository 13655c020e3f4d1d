"""The SQL of the patterns: teaching sketches for throw-away copies. No reslice command writes like most of them."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("sql")


def statement(name: str) -> str:
    """Return a sketch without its comment; `:start` and `:end` stand where its bounds belong."""
    return "".join(line for line in _lines(name) if not line.startswith("--")).strip()


def comment(name: str) -> str:
    """Return what a sketch says of itself, as one line."""
    return " ".join(line.removeprefix("--").strip() for line in _lines(name) if line.startswith("--"))


def filled(name: str, start: str, end: str) -> str:
    """Return a sketch without its comment, with two SQL expressions as its bounds."""
    return statement(name).replace(":start", start).replace(":end", end)


def _lines(name: str) -> list[str]:
    return (FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines(keepends=True)
