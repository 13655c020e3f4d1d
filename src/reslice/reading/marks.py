"""A job's text with every placeholder and template made into plain SQL that any dialect reads.

Each placeholder becomes a word of ours, a mark, that stands for it as a name or inside a string. Of Jinja, references
become the tables they mean, `config` is read, conditions that cannot be decided keep their first branch, and the rest
is a mark as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from reslice.reading.jinja import UNKNOWN, Reference, plain
from reslice.reading.rendered import Piece, rendered

MARK = re.compile(r"reslice_mark_\d+_")
_BACKSLASH_DIALECTS = frozenset(
    {"mysql", "bigquery", "spark", "spark2", "databricks", "hive", "snowflake", "clickhouse", "doris", "starrocks"}
)
_PLACEHOLDER = re.compile(
    r"""
      [#$]\{[^{}\n]+\}                        # ${name}, ${hiveconf:name}, #{name}
    | %\(\w+\)s | %s(?!\w)                    # %(name)s, %s
    | \{\s*[A-Za-z_][\w.]*\s*\}               # {name}
    | (?<![\w:\]\)'"$@]):[A-Za-z_]\w*         # :name, and neither ::type nor a path
    | (?<![\w:\]\)'"$@])(?<!['"]\ ):(?:'[A-Za-z_]\w*'|"[A-Za-z_]\w*")  # :'name' and :"name" of psql
    | (?<![\w$@])@[A-Za-z_]\w*                # @name
    | (?<![\w$])\$(?:\d+|[A-Za-z_]\w*)(?![\w$])   # $1, $name, and no dollar quote
    | (?<=[\s(,=<>])\?(?=[\s),;]|$)           # ?
    """,
    re.VERBOSE,
)
_IN_STRING = re.compile(r"[#$]\{[^{}\n']+\}|%\(\w+\)s|%s(?!\w)|\{\s*[A-Za-z_][\w.]*\s*\}|(?<='):[A-Za-z_]\w*(?=')")
_DOLLAR_QUOTE = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_JINJA = re.compile(r"\{[{%#]")
_COMMENT_ENDS = ("\n", "*/")
_WITHIN = {
    "": re.compile(r"['\"`#${%:@?/-]"),
    "'": re.compile(r"['\\#${%:]"),
    '"': re.compile(r'["\\#${%:]'),
    "`": re.compile(r"[`\\]"),
}
"""Where the reading has to stop: in plain SQL, and within each kind of quote."""


THIS = "reslice_this_table"
"""The name that stands for dbt's own table."""


@dataclass(slots=True)
class Marked:
    """SQL without templates. `marks` hold what each mark stands for, `config` what dbt is told about the model.

    `this` is true where the text names the table that it fills without saying which that is.
    """

    text: str = ""
    marks: dict[str, str] = field(default_factory=dict)
    config: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    has_jinja: bool = False
    origins: list[tuple[int, int]] = field(default_factory=list)
    """Where pieces of the text begin, and where in the file they stand, both counted in characters, in order."""

    def origin(self, offset: int) -> int:
        """Return where in the file a place of the text stands."""
        place = bisect_right(self.origins, offset, key=lambda pair: pair[0]) - 1
        if place < 0:
            return offset
        here, there = self.origins[place]
        return there + offset - here

    def shown(self, text: str) -> str:
        """Return text with the placeholders as they were written."""
        text = text.replace(THIS, "{{ this }}")
        return MARK.sub(lambda found: self.marks.get(found[0], found[0]), text)


def marked(
    text: str,
    dialect: str,
    *,
    is_incremental: bool = True,
    variables: Mapping[str, object] | None = None,
    has_placeholders: bool = True,
) -> Marked:
    """Return the text with its placeholders marked, by the lexical rules of a dialect.

    Of a dbt model it is the text of an incremental run, or of the first one; `variables` are the defaults of its vars.
    `has_placeholders` is false where whoever runs the text knows none but those of Jinja: `a :b` is a path then.
    """
    found = Marked()
    if _JINJA.search(text) is None:
        pieces = [Piece(text, 0, len(text))]
    else:
        template = rendered(text, is_incremental=is_incremental, variables=variables)
        pieces = template.pieces
        found.has_jinja = True
        found.unsure += template.unsure
        for each in template.configured:
            found.config |= {name: _option(value) for name, value in each.values.items()}
    reader = _Reader(found, dialect, has_placeholders)
    for piece in pieces:
        reader.read(piece, text[piece.start : piece.end])
    found.text = "".join(reader.parts)
    return found


class _Reader:
    """Goes through pieces of a text once, telling SQL, strings and comments apart."""

    def __init__(self, found: Marked, dialect: str, has_placeholders: bool) -> None:
        self.found = found
        self.has_placeholders = has_placeholders
        self.has_backslash = dialect in _BACKSLASH_DIALECTS
        self.has_hash_comments = dialect in ("mysql", "bigquery")
        self.parts: list[str] = []
        self.written = 0
        self.within = ""
        """What ends the string, comment or quoted body that is being read; empty in plain SQL."""
        self.by_text: dict[str, str] = {}

    def read(self, piece: Piece, source: str) -> None:
        if piece.value is None:
            self.text(piece.text, piece.start)
        elif self.within in _COMMENT_ENDS:
            self.keep(source, piece.start)
        elif isinstance(piece.value, Reference):
            self.reference(piece.value, source, piece.start)
        elif piece.value is UNKNOWN:
            self.put(self.mark(f"{{{{ {' '.join(piece.text.split())} }}}}"), piece)
        else:
            self.put(piece.text, piece)
            self.text_state(piece.text)

    def text(self, text: str, start: int) -> None:
        """Read text of the file, which begins at `start` there."""
        at = kept = 0
        while at < len(text):
            found = (_WITHIN.get(self.within) or _until(self.within)).search(text, at)
            if found is None:
                break
            at = found.start()
            mark, end = self.step(text, at)
            if mark is not None:
                self.keep(text[kept:at], start + kept)
                self.keep(mark, start + at)
                kept = end
            at = end
        self.keep(text[kept:], start + kept)

    def text_state(self, text: str) -> None:
        """Go through text that an expression gave, only to know whether a string or a comment is open after it."""
        at = 0
        while at < len(text):
            found = (_WITHIN.get(self.within) or _until(self.within)).search(text, at)
            if found is None:
                return
            _, at = self.step(text, found.start(), is_marking=False)

    def step(self, text: str, at: int, *, is_marking: bool = True) -> tuple[str | None, int]:
        """Read what stands at a place: what to write instead (None: the same), and where the next one begins."""
        if self.within:
            return self.step_within(text, at, is_marking)
        if text.startswith("--", at) or (text[at] == "#" and self.has_hash_comments and text[at + 1 : at + 2] != "{"):
            self.within = "\n"
            return ("--", at + 1) if text[at] == "#" else (None, at + 2)
        if text.startswith("/*", at):
            self.within = "*/"
            return None, at + 2
        dollar = _DOLLAR_QUOTE.match(text, at)
        if dollar is not None:
            self.within = dollar[0]
            return None, dollar.end()
        found = _PLACEHOLDER.match(text, at) if self.has_placeholders else None
        if found is not None:
            return (self.mark(found[0]) if is_marking else None), found.end()
        if text[at] in "'\"`":
            self.within = text[at]
        return None, at + 1

    def step_within(self, text: str, at: int, is_marking: bool) -> tuple[str | None, int]:
        if self.within in "'\"`":
            if text[at] == "\\" and self.has_backslash:
                return None, at + 2
            found = _IN_STRING.match(text, at) if self.within != "`" and self.has_placeholders else None
            if found is not None:
                return (self.mark(found[0]) if is_marking else None), found.end()
        if text.startswith(self.within, at):
            end = at + len(self.within)
            self.within = ""  # a doubled quote ends one string and begins the next, which is the same to us
            return None, end
        return None, at + 1

    def keep(self, text: str, position: int) -> None:
        """Write text that stands at a position of the file."""
        if not text:
            return
        origins = self.found.origins
        here, there = origins[-1] if origins else (0, 0)
        if position - self.written != there - here or not origins:
            origins.append((self.written, position))
        self.parts.append(text)
        self.written += len(text)

    def put(self, text: str, piece: Piece) -> None:
        """Write text in the place of an expression; what is longer than it comes from its last character."""
        length = piece.end - piece.start
        self.keep(text[:length], piece.start)
        for each in text[length:]:
            self.keep(each, piece.end - 1)

    def mark(self, text: str) -> str:
        """Return the mark of a placeholder; the same placeholder has the same mark."""
        if text in ("?", "%s") or text not in self.by_text:
            name = f"reslice_mark_{len(self.found.marks)}_"
            self.found.marks[name] = text
            self.by_text[text] = name
        return self.by_text[text]

    def reference(self, reference: Reference, source: str, start: int) -> None:
        piece = Piece(source, start, start + len(source))
        if reference.kind == "this":
            self.put(THIS, piece)
            return
        name = reference.names[-1]
        self.put(name if name.isidentifier() else f'"{name}"', piece)
        self.found.unsure.append(f"{' '.join(source.split())} was read as the table {name}")


def _until(end: str) -> re.Pattern[str]:
    return re.compile(re.escape(end))


def _option(value: object) -> tuple[str, ...]:
    found = plain(value)
    if isinstance(found, list):
        return tuple(map(str, found))
    return (str(found),)


def word_for(mark: str, marks: Mapping[str, str]) -> str:
    """Return a name that nobody has for a placeholder without counterpart: a plan that meets it stops, and names it."""
    words = re.findall(r"[A-Za-z_]\w*", marks.get(mark, "placeholder"))
    return f"replace_{'_'.join(words).lower() or 'placeholder'}"
