"""Whether the rows of a query are unique by the columns that a write matches them by."""

from __future__ import annotations

import re

from sqlglot import exp

from reslice.audit.naming import table_columns
from reslice.audit.write import Write
from reslice.reading.bounds import conjuncts
from reslice.reading.marks import MARK
from reslice.reading.nodes import every
from reslice.reading.outputs import Output, grain

_DESCRIBES = re.compile(
    r"(.+?)_?(?:name|label|title|desc|description|code|key|text|slug|email|type|category|status)", re.I
)

_HASHES = (exp.MD5, exp.MD5Digest, exp.SHA, exp.SHA2, exp.FarmFingerprint, exp.Concat, exp.ConcatWs, exp.DPipe)
_HASH_NAME = re.compile(r"hash|md5|sha\d*|fingerprint|surrogate|concat|checksum|crc32|uuid_?5|uuid_string", re.I)


def finer_columns(write: Write) -> tuple[str, ...]:
    """Return the columns of the table that the source has several rows of for one key; empty where none is known.

    A column that the query holds at one value, or that is made from columns of the key alone, makes no second row; nor
    does one that seems to describe a column of the key.
    """
    query = write.query
    if query is None or write.grain is None or isinstance(query.tree, exp.SetOperation):
        return ()
    outputs = query.outputs()
    if grain(query, outputs).unsure:
        return ()
    columns = table_columns(write)
    by_name = {columns.get(each.name.lower(), each.name.lower()): each for each in outputs}
    keys = set(write.keys) | _equal_in_update(write)
    behind = {name for key in keys if key in by_name for name in _told_by(by_name[key])}
    return tuple(
        column
        for column in write.grain
        if column not in keys
        and not _describes(column, keys)
        and not (column in by_name and _is_held(by_name[column], behind))
    )


def _equal_in_update(write: Write) -> set[str]:
    """Return the columns of the source that an UPDATE holds equal to its key; empty for other writes."""
    if not isinstance(write.node, exp.Update):
        return set()
    equal = {column.sql().lower() for each in write.matches if each.other for column in every(each.other, exp.Column)}
    sides = [
        (each.this.sql().lower(), each.expression.sql().lower())
        for each in every(write.node, exp.EQ)
        if each.arg_key != "expressions"  # not what is set
        if isinstance(each.this, exp.Column) and isinstance(each.expression, exp.Column)
    ]
    sides = [each for each in sides if each[0] != each[1]][:200]
    before = 0
    while len(equal) > before:
        before = len(equal)
        for left, right in sides:
            if left in equal or right in equal:
                equal |= {left, right}
    return {each.rpartition(".")[2].strip('"`[]') for each in equal}


def declared_finer(write: Write) -> tuple[str, tuple[str, ...]] | None:
    """Return the one table whose rows are merged as they are, with a key of it that the match leaves out.

    None where the table is declared nowhere, or where one of its declared keys is part of the match.
    """
    query = write.query
    tree = query.tree if query is not None else None
    if query is None or write.is_aggregate or not isinstance(tree, exp.Select):
        return None
    if any(tree.args.get(name) for name in ("group", "distinct", "qualify", "joins", "limit", "where")):
        return None
    tables = list(query.tables(tree).values())
    keys = write.script.table(tables[0]).keys if len(tables) == 1 else []
    matched = _source_columns(write)
    if not keys or not matched or any(set(key) <= matched for key in keys):
        return None
    return tables[0], keys[0]


def _source_columns(write: Write) -> set[str]:
    """Return the columns of the source that the key of the table is compared with, by their names in the source."""
    query = write.query
    assert query is not None, "only a write with a query has a source"
    names = {table: name for name, table in table_columns(write).items()}
    by_name = {each.name.lower(): each for each in query.outputs()}
    found: set[str] = set()
    for match in write.matches:
        own = [column.name.lower() for column in every(match.other, exp.Column)] if match.other is not None else []
        for name in own or [names.get(match.column, match.column)]:
            origin = by_name[name].origin if name in by_name else None
            found.add(origin.name.lower() if isinstance(origin, exp.Column) else name)
    return found


def _told_by(output: Output) -> set[str]:
    """Return the columns whose values an output tells: the one that it is, or all that a hash or a text is made of."""
    origin = output.origin
    if isinstance(origin, exp.Column):
        return {origin.name.lower()}
    is_whole = origin is not None and any(
        isinstance(each, _HASHES) or (isinstance(each, exp.Anonymous) and _HASH_NAME.search(str(each.this)))
        for each in origin.walk()
    )
    return {each.name.lower() for each in every(origin, exp.Column)} if origin is not None and is_whole else set()


def _is_held(output: Output, behind: set[str]) -> bool:
    """Whether a column has one value only, or one for each value of the key."""
    if output.origin is None or output.select is None:
        return False
    made_of = {each.name.lower() for each in every(output.origin, exp.Column) if not MARK.fullmatch(each.name)}
    if made_of <= behind:
        return True
    where = output.select.args.get("where")
    for each in conjuncts(where) if where is not None else []:
        inner = each.unnest()
        if isinstance(inner, exp.EQ):
            for left, right in ((inner.this, inner.expression), (inner.expression, inner.this)):
                own = {column.name.lower() for column in every(left, exp.Column)}
                is_value = not [one for one in every(right, exp.Column) if not MARK.fullmatch(one.name)]
                if is_value and own == made_of and (left == output.origin or isinstance(left.unnest(), exp.Column)):
                    return True
    return False


def _describes(column: str, keys: set[str]) -> bool:
    """Whether a column seems to say more about one of the key: channel_name of channel_id."""
    found = _DESCRIBES.fullmatch(column)
    stem = found[1] if found is not None else column
    return any(
        key in (stem, column) or key.removesuffix("_id") == stem for key in keys if key.endswith("_id") or key == stem
    )
