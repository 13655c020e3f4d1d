"""Words of the studio's pages: ranges as people say them."""

from __future__ import annotations

import pytest

from reslice.studio.pages import said


@pytest.mark.parametrize(
    ("range_text", "words"),
    [
        ("2026-03-02", "2 Mar 2026"),
        ("2026-03-02..2026-03-04", "2 to 4 Mar 2026"),
        ("2026-02-27..2026-03-04", "27 Feb to 4 Mar 2026"),
        ("2025-12-31..2026-01-01", "31 Dec 2025 to 1 Jan 2026"),
        ("2026-03..2026-05", "2026-03 to 2026-05"),
        ("2025-10-26T02:00", "26 Oct 2025 02:00"),
        ("2025-10-26T02:00+02:00", "26 Oct 2025 02:00 +02:00"),
        ("2025-10-26T02:00+02:00..2025-10-26T02:00+01:00", "26 Oct 2025 02:00 +02:00 to 26 Oct 2025 02:00 +01:00"),
        ("2026-01,2026-03", "2026-01, 2026-03"),
        ("2026-01,2026-03,2026-05,2026-07", "2026-01, 2026-03, 2026-05, 2026-07"),
        ("2026-01,2026-03,2026-05,2026-07..2026-08,2026-10", "2026-01, 2026-03, 2026-05 and 2 more ranges"),
    ],
)
def test_a_range_as_people_say_it(range_text: str, words: str) -> None:
    assert said(range_text) == words


def test_two_hours_that_a_clock_shows_alike_are_told_apart() -> None:
    assert said("2025-10-26T02:00+02:00") != said("2025-10-26T02:00+01:00")


def test_a_run_over_many_ranges_takes_no_more_room_than_one_over_few() -> None:
    assert len(said(",".join(f"2025-11-{day:02d}" for day in range(1, 31, 2)))) < 60
