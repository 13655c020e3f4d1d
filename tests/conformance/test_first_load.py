"""A first load has nothing to compare with: what a guard would stop on a filled target is told in words."""

from __future__ import annotations

import pytest

from tests.conformance.databases import Database
from tests.conformance.test_ten_cases import JAN1, JAN2, JAN3, SOURCE, Shop

BY_TIMESTAMP = SOURCE.replace("order_date BETWEEN :start AND :end", "order_ts BETWEEN :start AND :end")


@pytest.fixture
def empty_shop(engine: Database) -> Shop:
    shop = Shop(engine)
    engine.execute("DELETE FROM daily_orders")
    return shop


def warned(shop: Shop, range: str) -> list[str]:
    return [text for text in shop.plan(range).warnings if ":end_instant" in text]


@pytest.mark.parametrize("range", [f"{JAN1}..{JAN3}", JAN3])
def test_a_source_that_stops_at_the_midnight_of_the_last_day_is_told(empty_shop: Shop, range: str) -> None:
    empty_shop.source(BY_TIMESTAMP)
    (warning,) = warned(empty_shop, range)
    assert warning.startswith(f"{JAN3}, the last slice, has no rows on either side; if source.sql compares a timestamp")
    assert warning in empty_shop.run(range).warnings


@pytest.mark.parametrize("range", [f"{JAN1}..{JAN3}", JAN2, "2026-01"])
def test_a_source_that_keeps_to_days_is_not(empty_shop: Shop, range: str) -> None:
    """January ends in days that are empty one after the other: a range that is not over, and no fault."""
    assert warned(empty_shop, range) == []


def test_a_source_that_takes_instants_is_not(empty_shop: Shop) -> None:
    instants = "order_ts >= :start_instant AND order_ts < :end_instant"
    empty_shop.source(SOURCE.replace("order_date BETWEEN :start AND :end", instants))
    assert warned(empty_shop, "2026-01-04") == []
