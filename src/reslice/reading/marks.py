"""A job's text with every placeholder and template made into plain SQL that any dialect reads.

Each placeholder becomes a word of ours, a mark, that stands for it as a name or inside a string. Of Jinja, references
become the tables they mean, `config` is read, conditions keep their first branch, and the rest is a mark as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    | (?<![\w$@])@[A-Za-z_]\w*                # @name
    | (?<![\w$])\$(?:\d+|[A-Za-z_]\w*)(?![\w$])   # $1, $name, and no dollar quote
    | (?<=[\s(,=<>])\?(?=[\s),;]|$)           # ?
    """,
    re.VERBOSE,
)
_IN_STRING = re.compile(r"[#$]\{[^{}\n']+\}|%\(\w+\)s|%s(?!\w)|\{\s*[A-Za-z_][\w.]*\s*\}|(?<='):[A-Za-z_]\w*(?=')")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_HASH_COMMENT = re.compile(r"#(?!\{)[^\n]*")
_DOLLAR_QUOTE = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_JINJA = re.compile(r"\{#.*?(?:#\}|\Z)|\{%-?(?P<tag>.*?)(?:-?%\}|\Z)|\{\{-?(?P<value>.*?)(?:-?\}\}|\Z)", re.DOTALL)
_CALL = re.compile(r"\s*(ref|source|this|config)\b\s*(?:\((.*)\))?\s*", re.DOTALL)
_TEXTS = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_OPTION = re.compile(r"""(\w+)\s*=\s*(\[[^\]]*\]|'[^']*'|"[^"]*"|[\w.]+)""")


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
        return MARK.sub(lambda found: self.marks.get(found[0], found[0]), text)


THIS = "reslice_this_table"
"""The name that stands for dbt's own table."""


def marked(text: str, dialect: str, *, is_incremental: bool = True) -> Marked:
    """Return the text with its placeholders marked, by the lexical rules of a dialect.

    Of a dbt model it is the text of an incremental run, or of the first one.
    """
    found = Marked()
    reader = _Reader(text, found, dialect, is_incremental)
    found.text = reader.read()
    return found


class _Reader:
    """Goes through a text once, telling SQL, strings, comments and templates apart."""

    def __init__(self, text: str, found: Marked, dialect: str, is_incremental: bool) -> None:
        self.text = text
        self.is_incremental = is_incremental
        self.position = self.written = 0
        self.found = found
        self.has_backslash = dialect in _BACKSLASH_DIALECTS
        self.has_hash_comments = dialect in ("mysql", "bigquery")
        self.parts: list[str] = []
        self.quote = ""
        self.skipping: list[bool] = []
        """For each open condition, innermost last: whether this branch is left out."""
        self.taken: list[bool] = []
        """For each of them: whether one of its branches was taken."""
        self.by_text: dict[str, str] = {}

    def read(self) -> str:
        position = 0
        while position < len(self.text):
            self.position = position
            position = self.step(position)
        return "".join(self.parts)

    def keep(self, text: str) -> None:
        if not any(self.skipping):
            self.place()
            self.parts.append(text)
            self.written += len(text)

    def place(self) -> None:
        """Note where the text that is written next comes from, unless it goes on where the last one ended."""
        origins = self.found.origins
        here, there = origins[-1] if origins else (0, 0)
        if self.position - self.written != there - here or not origins:
            origins.append((self.written, self.position))

    def step(self, at: int) -> int:
        """Read one piece and return where the next one begins."""
        jinja = _JINJA.match(self.text, at)
        if jinja is not None:
            self.jinja(jinja)
            return jinja.end()
        if self.quote:
            return self.in_quote(at)
        for pattern in (_COMMENT, _DOLLAR_QUOTE, *([_HASH_COMMENT] if self.has_hash_comments else [])):
            silent = pattern.match(self.text, at)
            if silent is not None:
                self.keep(silent[0] if pattern is not _HASH_COMMENT else f"--{silent[0][1:]}")
                return silent.end()
        found = _PLACEHOLDER.match(self.text, at)
        if found is not None:
            self.keep(self.mark(found[0]))
            return found.end()
        if self.text[at] in "'\"`":
            self.quote = self.text[at]
        self.keep(self.text[at])
        return at + 1

    def in_quote(self, at: int) -> int:
        if self.text[at] == "\\" and self.has_backslash:
            self.keep(self.text[at : at + 2])
            return at + 2
        found = _IN_STRING.match(self.text, at) if self.quote != "`" else None
        if found is not None:
            self.keep(self.mark(found[0]))
            return found.end()
        if self.text[at] == self.quote:
            self.quote = ""  # a doubled quote ends one string and begins the next, which is the same to us
        self.keep(self.text[at])
        return at + 1

    def mark(self, text: str) -> str:
        """Return the mark of a placeholder; the same placeholder has the same mark."""
        if text in ("?", "%s") or text not in self.by_text:
            name = f"reslice_mark_{len(self.found.marks)}_"
            self.found.marks[name] = text
            self.by_text[text] = name
        return self.by_text[text]

    def jinja(self, found: re.Match[str]) -> None:
        self.found.has_jinja = True
        if found["tag"] is not None:
            self.tag(found["tag"].strip())
        elif found["value"] is not None:
            self.value(found[0], found["value"])

    def tag(self, text: str) -> None:
        word = text.split(maxsplit=1)[0] if text else ""
        if word == "if":
            is_first = "is_incremental" in text and not re.search(r"\bnot\s+is_incremental", text)
            self.skipping.append("is_incremental" in text and is_first is not self.is_incremental)
            self.taken.append(not self.skipping[-1])
            if "is_incremental" not in text:
                self.found.unsure.append(f"the branch of {{% {text} %}} was taken, whatever the condition says")
        elif word in ("else", "elif") and self.skipping:
            self.skipping[-1] = not self.skipping[-1] if word == "else" and not self.taken[-1] else True
            self.taken[-1] = self.taken[-1] or not self.skipping[-1]
        elif word == "endif" and self.skipping:
            self.skipping.pop()
            self.taken.pop()
        elif word == "for":
            self.found.unsure.append(f"the loop {{% {text} %}} was read once; write out what it makes")

    def value(self, whole: str, text: str) -> None:
        call = _CALL.fullmatch(text)
        if call is None:
            self.keep(self.mark(f"{{{{ {' '.join(text.split())} }}}}"))
            return
        texts = [first or second for first, second in _TEXTS.findall(call[2] or "")]
        if call[1] == "this":
            self.keep(THIS)
        elif call[1] == "config":
            self.found.config |= {name: _option(value) for name, value in _OPTION.findall(call[2] or "")}
        elif texts:
            name = texts[-1]
            self.keep(name if name.isidentifier() else f'"{name}"')
            self.found.unsure.append(f"{' '.join(whole.split())} was read as the table {name}")
        else:
            self.keep(self.mark(" ".join(whole.split())))


def _option(value: str) -> tuple[str, ...]:
    texts = tuple(first or second for first, second in _TEXTS.findall(value))
    return texts or (value,)


def word_for(mark: str, marks: Mapping[str, str]) -> str:
    """Return a name that nobody has for a placeholder without counterpart: a plan that meets it stops, and names it."""
    words = re.findall(r"[A-Za-z_]\w*", marks.get(mark, "placeholder"))
    return f"replace_{'_'.join(words).lower() or 'placeholder'}"
