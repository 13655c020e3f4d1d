"""A query as an audit has it: nobody changes it any more, so what one rule has found in it the next one need not."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from reslice.reading.nodes import Node, every
from reslice.reading.outputs import JobQuery, Output


class ReadQuery(JobQuery):
    """A query whose tree stays as it is. The queries that are kept as keys keep their numbers from being used again."""

    def __init__(self, tree: exp.Query, dialect: str) -> None:
        self._known_parts: dict[int, list[exp.Expr]] = {}
        super().__init__(tree, dialect)
        self._known_outputs: list[Output] | None = None
        self._known_relations: dict[int, tuple[exp.Select, dict[str, exp.Query | None]]] = {}
        self._known_names: dict[int, tuple[exp.Query, frozenset[str]]] = {}

    def know(self, more: Mapping[str, exp.Query]) -> None:
        """Take in queries by name; what was found by the names that were known before is found again."""
        super().know(more)
        self._known_outputs = None
        self._known_relations.clear()

    def parts(self, tree: exp.Expr, *kinds: type[Node]) -> list[Node]:
        """Return the parts of the query, or of one that it knows by name, that are of some kinds."""
        if id(tree) not in self._known_parts:
            self._known_parts[id(tree)] = every(tree, exp.Expr)
        return [each for each in self._known_parts[id(tree)] if isinstance(each, kinds)]

    def outputs(self) -> list[Output]:
        """Return the columns of the query, in order."""
        if self._known_outputs is None:
            self._known_outputs = super().outputs()
        return [*self._known_outputs]

    def relations(self, select: exp.Select) -> Mapping[str, exp.Query | None]:
        """Return what a SELECT reads by alias; None stands for a table of the database."""
        if id(select) not in self._known_relations:
            self._known_relations[id(select)] = select, {**super().relations(select)}
        return self._known_relations[id(select)][1]

    def names(self, query: exp.Query) -> frozenset[str]:
        """Return the names, in small letters, of the columns that a query says."""
        if id(query) not in self._known_names:
            self._known_names[id(query)] = query, super().names(query)
        return self._known_names[id(query)][1]
