"""Which names top-level statements may read before they bind them.

A loop variable is bound before it is read; `total` in `total = total + 1` is not. The analysis is
conservative: a name that may be read first counts as read first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from jaxsight.source.analysis.syntax_trees import blocks_of
from jaxsight.text.names import bound_by, bound_in, bound_in_scope


def read_before_bound(body: Sequence[ast.stmt], names: AbstractSet[str]) -> set[str]:
    """Return those of `names` that executing `body` may read before it binds them."""
    visitor = _Visitor(names)
    visitor.block(body, set())
    return visitor.early


class _Visitor:
    """Visits statements with the names that are bound before them."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.names: Final = names
        self.early: set[str] = set()

    def block(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Read a block that begins with `bound`; return the names certainly bound after it."""
        bound = set(bound)
        for statement in body:
            visit = getattr(self, f"visit_{type(statement).__name__}", self.visit_other)
            bound |= visit(statement, bound)
        return bound

    # Each method reads a statement, and returns the names that it certainly binds.

    def visit_Assign(self, statement: ast.Assign, bound: set[str]) -> set[str]:
        self.read(statement.value, bound)
        return self.targets(statement.targets, bound)

    def visit_AnnAssign(self, statement: ast.AnnAssign, bound: set[str]) -> set[str]:
        self.read(statement.annotation, bound)
        if statement.value is None:
            return set()
        self.read(statement.value, bound)
        return self.targets([statement.target], bound)

    def visit_AugAssign(self, statement: ast.AugAssign, bound: set[str]) -> set[str]:
        if not isinstance(statement.target, ast.Name):
            return self.visit_other(statement, bound)
        self.see(statement.target.id, bound)
        self.read(statement.value, bound)
        return {statement.target.id}

    def visit_For(self, statement: ast.For | ast.AsyncFor, bound: set[str]) -> set[str]:
        self.read(statement.iter, bound)
        self.block(statement.body, bound | self.targets([statement.target], bound))
        self.block(statement.orelse, bound)
        return set()

    visit_AsyncFor = visit_For

    def visit_If(self, statement: ast.If, bound: set[str]) -> set[str]:
        self.read(statement.test, bound)
        return self.block(statement.body, bound) & self.block(statement.orelse, bound)

    def visit_With(self, statement: ast.With | ast.AsyncWith, bound: set[str]) -> set[str]:
        inside = set(bound)
        for context in statement.items:
            self.read(context.context_expr, inside)
            if context.optional_vars is not None:
                inside |= self.targets([context.optional_vars], inside)
        return self.block(statement.body, inside)

    visit_AsyncWith = visit_With

    def visit_Try(self, statement: ast.Try | ast.TryStar, bound: set[str]) -> set[str]:
        after = self.block(statement.body, bound)
        for handler in statement.handlers:
            if handler.type is not None:
                self.read(handler.type, bound)
            self.block(handler.body, bound.union(bound_by(handler)))
        self.block(statement.orelse, after)
        return self.block(statement.finalbody, bound)

    visit_TryStar = visit_Try

    def visit_Match(self, statement: ast.Match, bound: set[str]) -> set[str]:
        self.read(statement.subject, bound)
        for case in statement.cases:
            self.read(case.pattern, bound)
            inside = bound.union(bound_in(case.pattern))
            if case.guard is not None:
                self.read(case.guard, inside)
            self.block(case.body, inside)
        return set()

    def visit_FunctionDef(
        self, statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, bound: set[str]
    ) -> set[str]:
        self.read(statement, bound)
        return {statement.name}

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Import(self, statement: ast.Import | ast.ImportFrom, _bound: set[str]) -> set[str]:
        return set(bound_in_scope(statement))

    visit_ImportFrom = visit_Import

    def visit_other(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.read(child, bound)
        for block in blocks_of(statement):
            self.block(block, bound)
        return set()

    def targets(self, targets: Iterable[ast.expr], bound: set[str]) -> set[str]:
        names: set[str] = set()
        for target in targets:
            self.read(target, bound)
            names.update(bound_in(target))
        return names

    def read(self, node: ast.AST, bound: set[str]) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                    self.see(name, bound)

    def see(self, name: str, bound: set[str]) -> None:
        if name in self.names and name not in bound:
            self.early.add(name)
