"""RS601: A data frame is appended.

The rows of a frame are added to the table each time the program runs. Whether that is right depends on what they are:
events, each of them once, may be appended; groups with their sums may not, since the second run adds them again. Where
the frame comes from is not told in this file, so this cannot be decided by reading.

Where the frame is seen to be grouped, RS101 says so instead; where the rows of the range are deleted before, nothing is
said.

Bad (python):

    from sqlalchemy import create_engine

    def load(daily, url):
        daily.to_sql("daily_orders", create_engine(url), if_exists="append", index=False)

Good (python):

    import pandas as pd
    from sqlalchemy import create_engine

    def load(url):
        events = pd.read_csv("events.csv")
        events.to_sql("events", create_engine(url), if_exists="append", index=False)
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.python_frames import UNKNOWN_FRAME
from reslice.audit.rule import Found
from reslice.audit.write import Way, Write

HELP = "delete the rows of the range in the same transaction before, unless each row is an event of its own"


def write(write: Write) -> Iterator[Found]:
    """Yield an append of a frame of which nothing is known."""
    if write.way is not Way.APPEND or write.query is None:
        return
    if any(each.name.lower() == UNKNOWN_FRAME for each in write.query.parts(write.query.tree, exp.Table)):
        detail = f"whether its rows may be added to {write.called} twice depends on what made the frame"
        yield Found(write.span, detail, Sort.UNKNOWN)
