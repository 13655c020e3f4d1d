"""The lab: one static page on what a second run of a backfill does to a table.

Every figure on it is what DuckDB answered to the sketches in `sql/` when the page was built (`python -m
reslice.lab.build`); reading it runs nothing. The data are the synthetic retail orders.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("lab.html")
"""The page as it was built."""
