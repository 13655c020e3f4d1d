"""Figures as a page shows them: thousands separated for people, and the plain number beside them for everybody else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reslice.layout import shown
from reslice.studio.pages import number

if TYPE_CHECKING:
    from markupsafe import Markup

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def figure(value: object) -> Markup | str:
    """Return a number as `<data value="1234.50">1,234.50</data>`, with a `+` where it has one; other text as it is.

    A text is a number when it is written like one: who shows text of a user does not bring it here.
    """
    from markupsafe import Markup

    plain = shown(value)
    if not _NUMBER.fullmatch(plain):
        return plain
    sign = "+" if plain.startswith("+") else ""
    return Markup('<data value="{}">{}{}</data>').format(plain.removeprefix("+"), sign, number(plain))
