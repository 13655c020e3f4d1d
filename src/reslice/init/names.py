"""What the name of a column suggests: a guess that is always said, and never the only ground where there is data."""

from __future__ import annotations

import re

from reslice.contract import Unit

_STAMP_TIME = re.compile(
    r"(?:^|_)(?:load|insert|updat|creat|modif|process|refresh|ingest|comput|calculat|etl|dwh?|run|writ|sync|batch|export"
    r"|built|changed)[a-z]*_?(?:at|ts|time|timestamp|on|utc|dttm)$|^(?:inserted|updated|loaded|modified|created)$"
)
_STAMP_ID = re.compile(r"^(?:\w+_)?(?:batch|run|job|load|invocation|execution|process)_?(?:id|uuid|key)$")
_STAMP_DATE = re.compile(
    r"(?:^|_)(?:load|insert|updat|creat|modif|process|refresh|ingest|etl|dwh?)[a-z]*_(?:date|day|dt)$"
)
_IDENTIFIER = re.compile(
    r"(?:^|_)(?:id|key|code|no|nr|number|sk|hour|month|year|week|quarter|weekday|dow|rank|position|version|level|bucket"
    r"|zip|postcode|line)$|[a-z]Id$"
)
_AMOUNT = re.compile(r"^(?:number_of|num|n|nr_of|count|cnt|total|sum|avg|min|max|mean)_|(?:count|cnt|total|sum|avg)$")
_PROSE = re.compile(r"(?:^|_)(?:comments?|descriptions?|notes?|json|payload|url|message|reason|text|remarks?)$")
_SIGNED = re.compile(
    r"(?:^|_)(?:delta|diff|difference|change|net|balance|margin|profit|loss|temperature|temp|lat|latitude|lon|lng"
    r"|longitude|score|growth|variance|adjust\w*|correct\w*|delay|gain|pnl|offset|year|\w*_?ids?|key|celsius|fahrenheit"
    r"|degrees?|altitude|elevation|deviation|anomaly)(?:_|$)"
)
_NOT_BELOW_ZERO = re.compile(
    r"(?:^|_)(?:cents?|amount|amt|total|price|cost|costs|revenue|sales|turnover|gross|fees?|tax|taxes|vat|qty|quantity"
    r"|units|items|users|visitors|visits|views|clicks|sessions|hits|orders|bytes|seconds|minutes|duration|distance|weight"
    r"|length|size|volume|eur|usd|gbp|sum|spend|paid)(?:_|$)"
)
_COUNT = re.compile(r"(?:^|_)(?:count|cnt|counts|n|num|rows|events)(?:_|$)")
_DAY = re.compile(r"(?:^|_)(?:date|day|dt|ds|month|week|quarter|period|hour)(?:_|$)")
_OTHER_DAY = re.compile(r"(?:^|_)(?:birth|first|last|valid|expir\w*|due|ship\w*|deliver\w*|end|until|to|since)(?:_|$)")
_COPY = re.compile(r"(?:^|_)(?:backup|bak|old|tmp|temp|copy|stage|staging|stg|test|new|prev)(?:_|\d|$)")
_UNITS = {Unit.QUARTER: "quarter|qtr", Unit.MONTH: "month|mon", Unit.WEEK: "week|wk", Unit.HOUR: "hour|hr"}


def is_stamp_time(name: str) -> bool:
    """Whether a timestamp of this name tells when a row was written."""
    return _STAMP_TIME.search(name.lower()) is not None


def is_stamp_id(name: str) -> bool:
    """Whether a column of this name tells which run wrote a row."""
    return _STAMP_ID.match(name.lower()) is not None


def is_stamp_date(name: str) -> bool:
    """Whether a date of this name tells when a row was written, rather than when what it counts happened."""
    return _STAMP_DATE.search(name.lower()) is not None or is_stamp_time(name)


def is_identifier(name: str) -> bool:
    """Whether a whole number of this name tells things apart, rather than how many there are."""
    return _IDENTIFIER.search(name) is not None and _AMOUNT.search(name.lower()) is None


def is_prose(name: str) -> bool:
    """Whether text of this name says something about a row, rather than which row it is."""
    return _PROSE.search(name.lower()) is not None


def may_be_negative(name: str) -> bool:
    """Whether a number of this name may fall below zero, however the rows look today."""
    return _SIGNED.search(name.lower()) is not None


def is_amount(name: str) -> bool:
    """Whether a number of this name is an amount, a price, a length or the like: nothing that falls below zero."""
    return _NOT_BELOW_ZERO.search(name.lower()) is not None


def is_plural(name: str) -> bool:
    """Whether a whole number of this name says how many of something there are."""
    return re.search(r"[^aius\W_]s$", name.lower()) is not None


def is_count(name: str) -> bool:
    """Whether a number of this name counts rows."""
    return _COUNT.search(name.lower()) is not None


def is_day(name: str) -> bool:
    """Whether a column of this name says in which period a row lies."""
    return _DAY.search(name.lower()) is not None and _OTHER_DAY.search(name.lower()) is None


def is_copy(name: str) -> bool:
    """Whether a table of this name is a copy of another."""
    return _COPY.search(name.lower()) is not None


def unit_of(name: str) -> Unit | None:
    """Return the unit that a slice column's name says; None when it says none."""
    return next((unit for unit, words in _UNITS.items() if re.search(rf"(?:^|_)(?:{words})", name.lower())), None)
