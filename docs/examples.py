"""The projects that the pages of the examples start from: run once, and corrected after that."""

from __future__ import annotations

import subprocess
from pathlib import Path

from examples.flights import correct as flights_correct
from examples.flights import load as flights_load
from examples.grocery import correct as grocery_correct
from examples.grocery import load as grocery_load
from examples.lineitem import correct as lineitem_correct
from examples.lineitem import load as lineitem_load
from examples.lineitem.__main__ import GENERATOR, READY, YEARS

import reslice

ROOT = Path(__file__).parents[1]


def grocery(project: Path) -> None:
    """Make the grocery project with the hours around the autumn's clock change."""
    grocery_load.load(project)
    reslice.open(project / "reslice.yml").target("hourly_store_sales").run("2017-11-04..2017-11-06")
    grocery_correct.correct(project)


def flights(project: Path) -> None:
    """Make the flights project with its whole year."""
    flights_load.load(project)
    reslice.open(project / "reslice.yml").target("daily_flights").run("2013")
    flights_correct.correct(project)


def lineitem(project: Path) -> None:
    """Make the lineitem project at scale factor 0.01."""
    words = ("--into", str(project), "--scale", "0.01")
    generate = [str(GENERATOR), "-m", "examples.lineitem.generate", *words]
    subprocess.run(generate, cwd=ROOT, check=True, capture_output=True)
    lineitem_load.load(project)
    reslice.open(project / "reslice.yml").target("daily_shipments").run(YEARS)
    lineitem_correct.correct(project)


def lacking(page: str) -> str:
    """Return what this machine lacks to make the output of a page; nothing where it lacks nothing."""
    if "<!-- project: lineitem -->" in page and not READY.exists():
        return f"there is no {READY}, so TPC-H cannot be generated: make tpch says why"
    return ""
