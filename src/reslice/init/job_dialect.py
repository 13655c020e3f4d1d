"""What a translation from one dialect to another may have changed without a word, and what is not repeatable in any.

sqlglot translates syntax. Where two databases mean different things by the same words, it says nothing; each such
construct that a query holds is named here, so that a person looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from reslice.reading.marks import MARK
from reslice.reading.parse import quiet

_RANDOM = frozenset({"rand", "random", "uuid", "gen_random_uuid", "newid", "uuid_string", "generate_uuid", "randn"})
_CLOCK = frozenset(
    {"now", "getdate", "sysdate", "today", "curdate", "sysdatetime", "getutcdate", "clock_timestamp", "localtimestamp"}
)
_SHOWN_LENGTH = 70
_CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTime, exp.CurrentTimestampLTZ)


def render(query: exp.Expr, engine: str, *, pretty: bool = True) -> str:
    """Return a query as text in the target database's dialect."""
    with quiet():
        return query.sql(dialect=engine, pretty=pretty, indent=4, pad=4, unsupported_level=ErrorLevel.IGNORE)


def damages(query: exp.Expr, dialect: str, engine: str) -> list[str]:
    """Name every construct that a translation may have damaged; none where there is nothing to translate."""
    if dialect == engine:
        return _not_repeated(query, engine)
    found: dict[str, list[str]] = {}
    for node in query.walk():
        for kind, told in _KINDS.items():
            if isinstance(node, kind) and not _is_the_same(node):
                found.setdefault(told, []).append(_shown(node, dialect))
    doubts = [f"translated from {dialect} to {engine}: compare the figures of one slice before you trust it"]
    doubts += [f"translated: {_some(texts)}: {told}" for told, texts in found.items()]
    doubts += [
        f"translated: {text}" for text in (*_functions(query, dialect), *_comparisons(dialect), *_said(query, engine))
    ]
    return doubts


def _shown(node: exp.Expr, dialect: str) -> str:
    with quiet():
        text = " ".join(node.sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE).split())
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _some(texts: list[str]) -> str:
    names = list(dict.fromkeys(texts))
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _is_the_same(node: exp.Expr) -> bool:
    """Whether a construct means the same everywhere: a cast to an everyday type, or cutting a time to no week."""
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type("date", "timestamp", "bigint", "int", "double", "varchar", "text", "decimal"))
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc | exp.DatetimeTrunc):
        unit = node.args.get("unit")
        return unit is None or "WEEK" not in unit.sql().upper()
    return False


_KINDS: dict[type[exp.Expr] | tuple[type[exp.Expr], ...], str] = {
    exp.Div: "whether whole numbers divide to a whole number, and what a division by zero gives, differ",
    (exp.DateDiff, exp.TimestampDiff, exp.DatetimeDiff): "boundaries crossed or whole units passed: databases differ",
    (exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc): "a week may begin on another day",
    exp.Extract: "numbers of weeks and weekdays differ",
    (exp.DayOfWeek, exp.WeekOfYear, exp.Week): "numbers of weeks and weekdays differ",
    (exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.ToChar): "format letters differ",
    (exp.AtTimeZone, exp.ConvertTimezone): "which type comes out, and what a time without zone means, differ",
    (exp.Concat, exp.ConcatWs): "NULL in a concatenation gives NULL here and the rest there",
    (exp.Greatest, exp.Least): "NULL among the values gives NULL here and is left out there",
    (exp.ApproxDistinct, exp.ApproxQuantile, exp.Hll): "an estimate; another database estimates another number",
    (exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.Median): "interpolation and NULLs differ",
    (exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract): "regular expressions have other rules",
    (exp.Explode, exp.Unnest, exp.Lateral, exp.Posexplode): "rows for empty or NULL lists may be lost or added",
    (exp.Pivot,): "names and order of the columns may differ",
    (exp.JSONExtract, exp.JSONExtractScalar): "quotes and NULLs of JSON values differ",
    (exp.Round,): "halves may be rounded the other way",
    (exp.SafeDivide, exp.TryCast): "what becomes of values that do not fit differs",
    (exp.Collate,): "equal and smaller mean other things under another collation",
    (exp.Cast,): "the type may hold more, fewer, or rounded values",
}


def _functions(query: exp.Expr, dialect: str) -> Iterator[str]:
    """Yield the functions that sqlglot does not know, and passed on by name."""
    names = {
        str(node.this)
        for node in query.find_all(exp.Anonymous)
        if not MARK.search(str(node.this)) and str(node.this).lower() not in _RANDOM | _CLOCK
    }
    if names:
        yield f"{', '.join(sorted(names))}: not known to the translator and passed on by name from {dialect}"


def _comparisons(dialect: str) -> Iterator[str]:
    if dialect in ("mysql", "tsql", "fabric"):
        yield f"text: {dialect} by default takes 'a' and 'A' for equal, in GROUP BY as well; this database does not"
    if dialect == "oracle":
        yield "text: Oracle takes '' for NULL; this database does not"


def _said(query: exp.Expr, engine: str) -> Iterator[str]:
    """Yield what sqlglot itself says that it cannot translate."""
    try:
        with quiet():
            query.sql(dialect=engine, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        yield from (line.strip() for line in str(error).splitlines() if line.strip())


def _not_repeated(query: exp.Expr, engine: str) -> list[str]:
    """Name what sqlglot does not write as it read it, where both are the same dialect."""
    import sqlglot

    try:
        with quiet():
            again = sqlglot.parse_one(render(query, engine, pretty=False), dialect=engine)
    except SqlglotError as error:
        return [f"source: the draft cannot be read again: {str(error).splitlines()[0]}; {_or_another(engine)}"]
    told = "source: written down and read again, the query is not quite the same; compare both, and"
    return [] if again == query else [f"{told} {_or_another(engine)}"]


def _or_another(engine: str) -> str:
    return f"if the job is not in the SQL of {engine}, name its dialect:  --dialect NAME"


def unrepeatable(query: exp.Expr, engine: str) -> list[str]:
    """Name, in the dialect of the target database, what makes a source give other rows when it is run again."""
    checks: tuple[tuple[Callable[[exp.Expr], bool], str], ...] = (
        (_is_random, "is another value each time"),
        (_is_clock, "is the time of the run: a run next month computes other rows for the same range"),
        (lambda node: isinstance(node, exp.Limit | exp.Fetch | exp.TableSample), "keeps some rows of many"),
    )
    found = []
    for is_one, told in checks:
        texts = list(dict.fromkeys(_shown(node, engine) for node in query.walk() if is_one(node)))
        if texts:
            found.append(f"not repeatable: {', '.join(texts[:3])} {told}")
    return found


def _is_random(node: exp.Expr) -> bool:
    if isinstance(node, exp.Rand | exp.Randn | exp.Uuid):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in _RANDOM


def _is_clock(node: exp.Expr) -> bool:
    if isinstance(node, _CLOCKS):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in _CLOCK
