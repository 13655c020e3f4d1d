"""The text that a Python expression spells, and where in the file each of its characters is written.

Literals are read with their escapes, f-strings and `.format` with their fields as placeholders, sums of texts and names
that are given a text once. What is only known when the program runs is a placeholder, or the text is not known at all.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from reslice.audit.text import Text

_LITERAL = re.compile(r"""(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"""|'|")""")
_ESCAPE = re.compile(r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\})")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*")
_WRAPPERS = frozenset({"text", "dedent", "SQL", "cleandoc", "Template", "literal_column"})
_KEEPERS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "as_string"})
_DEPTH_MAX = 50

Lookup = Callable[[ast.expr], ast.expr | None]
"""Returns what a name or attribute was given, where it was given one thing only."""


@dataclass(slots=True)
class Spelled:
    """A text. `places` are the offsets at which a run of characters begins, here and in the file, in order.

    `fields` are the expressions that are put into it when the program runs.
    """

    text: str = ""
    places: list[tuple[int, int]] = field(default_factory=list)
    fields: list[ast.expr] = field(default_factory=list)

    def origin(self, offset: int) -> int:
        """Return where in the file a character is written."""
        place = max(0, bisect_right(self.places, offset, key=lambda pair: pair[0]) - 1)
        here, there = self.places[place]
        return there + offset - here

    def add(self, text: str, at: int) -> None:
        """Add characters that are written one after another from a place of the file on."""
        here = len(self.text)
        if not self.places or self.places[-1][1] - self.places[-1][0] != at - here:
            self.places.append((here, at))
        self.text += text


class Speller:
    """Spells the expressions of one file."""

    def __init__(self, text: Text, lookup: Lookup) -> None:
        self.source = text.text
        self.lines = text.text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.lookup = lookup

    def offset(self, line: int, column: int) -> int:
        """Return the place of a line and a column in bytes of UTF-8, as the syntax tree counts."""
        text = self.lines[line - 1]
        if text.isascii():
            return self.starts[line - 1] + column
        return self.starts[line - 1] + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Return where an expression stands in the file."""
        start = self.offset(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return start, start + 1
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def spelled(self, node: ast.expr) -> Spelled | None:
        """Return the text of an expression; None where nothing of it is known before the program runs."""
        found = Spelled()
        return found if self._spell(node, found, 0) and found.text else None

    def _spell(self, node: ast.expr, into: Spelled, depth: int) -> bool:
        if depth > _DEPTH_MAX:
            return False
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            self._literals(node, into, has_fields=False)
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._spell(node.left, into, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left = self._or_field(node.left, into, depth)
            right = self._or_field(node.right, into, depth)
            return left or right
        if isinstance(node, ast.Call):
            return self._call(node, into, depth)
        if isinstance(node, ast.Name | ast.Attribute):
            given = self.lookup(node)
            return given is not None and self._spell(given, into, depth + 1)
        return False

    def _or_field(self, node: ast.expr, into: Spelled, depth: int) -> bool:
        """Add the text of a part, or a placeholder for it; whether its text is known."""
        if self._spell(node, into, depth + 1):
            return True
        self._field(node, into, self.span(node)[0])
        return False

    def _call(self, node: ast.Call, into: Spelled, depth: int) -> bool:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if isinstance(node.func, ast.Attribute) and name == "format":
            inner = node.func.value
            if isinstance(inner, ast.Call) and inner.args:  # sql.SQL("…").format(…)
                inner = inner.args[0]
            if isinstance(inner, ast.Name | ast.Attribute):
                inner = self.lookup(inner) or inner
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                self._literals(inner, into, has_fields=True)
                into.fields += [*node.args, *(each.value for each in node.keywords)]
                return True
            return False
        if isinstance(node.func, ast.Attribute) and name in _KEEPERS:
            return self._spell(node.func.value, into, depth + 1)
        if name in _WRAPPERS and node.args:
            return self._spell(node.args[0], into, depth + 1)
        return False

    def _literals(self, node: ast.expr, into: Spelled, *, has_fields: bool) -> None:
        """Add the literals that an expression is written as, one beside another."""
        at, end = self.span(node)
        values = [each.value for each in ast.walk(node) if isinstance(each, ast.FormattedValue)]
        into.fields += values
        while at < end:
            found = _LITERAL.match(self.source, at)
            if found is None:
                comment = self.source[at] == "#"
                at = self.source.find("\n", at) if comment else at + 1
                if at < 0:
                    return
                continue
            prefix = found["prefix"].lower()
            at = self._literal(found.end(), found["quote"], into, "r" in prefix, "f" in prefix or has_fields)

    def _literal(self, at: int, quote: str, into: Spelled, is_raw: bool, has_fields: bool) -> int:
        """Add one literal from its first character on; return the place after its closing quote."""
        source = self.source
        while at < len(source) and not source.startswith(quote, at):
            each = source[at]
            if each == "\\":
                at = self._escape(at, into, is_raw)
            elif has_fields and source[at : at + 2] in ("{{", "}}"):
                into.add(each, at)
                at += 2
            elif has_fields and each == "{":
                end = _field_end(source, at)
                inner = source[at + 1 : end]
                self._named_field(inner, into, at)
                at = end + 1
            else:
                into.add(each, at)
                at += 1
        return at + len(quote)

    def _escape(self, at: int, into: Spelled, is_raw: bool) -> int:
        found = _ESCAPE.match(self.source, at)
        if is_raw or found is None:
            into.add(self.source[at : at + 2], at)
            return at + 2
        if found[0] != "\\\n":
            into.add(str(ast.literal_eval(f'"{found[0]}"')), at)
        return found.end()

    def _named_field(self, inner: str, into: Spelled, at: int) -> None:
        name = re.split(r"[!:](?!=)", inner, maxsplit=1)[0].strip()
        if _PLAIN_NAME.fullmatch(name):
            given = self.lookup(ast.Name(name)) if "." not in name else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                into.add(given.value, at)
                return
            into.add(f"{{{name}}}", at)
        else:
            spelled = re.sub(r"\W+", "_", name).strip("_")[:60]
            plain = f"field_{spelled}" if spelled[:1].isdigit() else spelled
            into.add(f"{{{plain or 'field'}}}", at)

    def _field(self, node: ast.expr, into: Spelled, at: int) -> None:
        into.fields.append(node)
        name = re.sub(r"\W+", "_", ast.unparse(node)).strip("_")[:60]
        into.add(f"{{{name if _PLAIN_NAME.fullmatch(name) else 'field_' + name}}}", at)


def _field_end(source: str, at: int) -> int:
    """Return the place of the bracket that closes a field which begins at a place."""
    depth, quote = 0, ""
    for place in range(at, len(source)):
        each = source[place]
        if quote:
            quote = "" if each == quote else quote
        elif each in "'\"":
            quote = each
        elif each in "{[(":
            depth += 1
        elif each in "}])":
            depth -= 1
            if depth == 0:
                return place
    return len(source) - 1
