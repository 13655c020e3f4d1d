"""The scopes of a Python file: each function, and the module, with what its names are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scope:
    """The body of a function, or of the module (`function` None), without the functions within."""

    def __init__(self, function: Function | None, body: list[ast.stmt], outer: Scope | None) -> None:
        self.function = function
        self.outer = outer
        self.body = body
        self.given: dict[str, list[ast.expr]] = {}
        self.arguments: set[str] = set()
        if function is not None:
            every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            self.arguments = {each.arg for each in every}
        for node in self.walk():
            self._take(node)

    @property
    def decorators(self) -> set[str]:
        """The last parts of the names of the function's decorators."""
        found = set()
        for each in self.function.decorator_list if self.function is not None else []:
            inner = each.func if isinstance(each, ast.Call) else each
            found.add(inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", ""))
        return found

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._give(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._give(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._give(node.target, ast.BinOp(node.target, node.op, node.value))
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._give(node.target, node.iter)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._give(item.optional_vars, item.context_expr)

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        name = name_of(target)
        if name:
            self.given.setdefault(name, []).append(value)

    def walk(self) -> Iterator[ast.AST]:
        """Yield every node of the body in the order in which they are written, without functions and classes within."""
        pending: list[ast.AST] = list(reversed(self.body))
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                continue
            yield node
            pending += reversed(list(ast.iter_child_nodes(node)))

    def values(self, node: ast.expr) -> list[ast.expr]:
        """Return everything that a name or attribute is given, here or in a scope around; nothing for an argument."""
        name = name_of(node)
        scope: Scope | None = self
        while scope is not None and name:
            if name in scope.given:
                return scope.given[name]
            if name in scope.arguments:
                return []
            scope = scope.outer
        return []

    def value(self, node: ast.expr) -> ast.expr | None:
        """Return what a name or attribute is given, where it is given one thing only."""
        values = self.values(node)
        return values[0] if len(values) == 1 else None


def name_of(node: ast.expr) -> str:
    """Return a name or a dotted name as it is written; empty for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = name_of(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def scopes_of(tree: ast.Module) -> list[Scope]:
    """Return the module's scope and those of its functions and methods, in the order in which they are written."""
    found: list[Scope] = []
    pending: list[tuple[Function | None, list[ast.stmt], Scope | None]] = [(None, tree.body, None)]
    while pending:
        function, body, outer = pending.pop(0)
        scope = Scope(function, body, outer)
        found.append(scope)
        inner: list[tuple[Function | None, list[ast.stmt], Scope | None]] = []
        for node in _definitions(body):
            if isinstance(node, ast.ClassDef):
                own = Scope(None, node.body, scope)
                for name, values in own.given.items():
                    for owner in ("self", "cls", node.name):
                        scope.given.setdefault(f"{owner}.{name}", []).extend(values)
                inner += [
                    (each, each.body, scope)
                    for each in node.body
                    if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
            else:
                inner.append((node, node.body, scope))
        pending += inner
    return sorted(found, key=lambda each: each.function.lineno if each.function is not None else 0)


def _definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Yield the functions and classes that are defined in a body, at any depth of blocks but in no other definition."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        else:
            pending += reversed(list(ast.iter_child_nodes(node)))
