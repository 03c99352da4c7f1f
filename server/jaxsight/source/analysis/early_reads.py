"""Which names top-level statements may read before they bind them.

A loop variable is bound before it is read; `total` in `total = total + 1` is not. The analysis is
conservative: a name that may be read first counts as read first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from jaxsight.source.analysis.syntax_trees import blocks_of
from jaxsight.text.names import bound_by, bound_in, bound_in_scope


def read_before_bound(body: Iterable[ast.stmt], names: AbstractSet[str]) -> set[str]:
    """Return those of `names` that executing `body` may read before it binds them."""
    reader = _Reader(names)
    reader.block(body, set())
    return reader.early


class _Reader:
    """Reads statements with the names that are bound before them."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.names: Final = names
        self.early: set[str] = set()

    def block(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Read a block that begins with `bound`; return the names certainly bound after it."""
        bound = set(bound)
        for statement in body:
            bound |= self.statement(statement, bound)
        return bound

    def statement(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        """Read a statement; return the names that it certainly binds."""
        match statement:
            case ast.Assign(targets=targets):
                self.read(statement, bound)
                return set(bound_in(*targets))
            case ast.AnnAssign(target=target, value=value):
                self.read(statement, bound)
                return set(bound_in(target)) if value is not None else set()
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.see(name, bound)
                self.read(value, bound)
                return {name}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.read(statement, bound)
                return {statement.name}
            case ast.Import() | ast.ImportFrom():
                return set(bound_in_scope(statement))
            case ast.For() | ast.AsyncFor():
                self.read(statement.iter, bound)
                self.read(statement.target, bound)
                self.block(statement.body, bound.union(bound_in(statement.target)))
                self.block(statement.orelse, bound)
                return set()
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test, bound)
                return self.block(body, bound) & self.block(orelse, bound)
            case ast.With() | ast.AsyncWith():
                inside = set(bound)
                for context in statement.items:
                    self.read(context, inside)
                    inside.update(bound_in(context.optional_vars) if context.optional_vars else ())
                return self.block(statement.body, inside)
            case ast.Try() | ast.TryStar():
                after = self.block(statement.body, bound)
                for handler in statement.handlers:
                    if handler.type is not None:
                        self.read(handler.type, bound)
                    self.block(handler.body, bound.union(bound_by(handler)))
                self.block(statement.orelse, after)
                return self.block(statement.finalbody, bound)
            case ast.Match(subject=subject, cases=cases):
                self.read(subject, bound)
                for case in cases:
                    self.read(case.pattern, bound)
                    inside = bound.union(bound_in(case.pattern))
                    if case.guard is not None:
                        self.read(case.guard, inside)
                    self.block(case.body, inside)
                return set()
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.read(child, bound)
        for block in blocks_of(statement):
            self.block(block, bound)
        return set()

    def read(self, node: ast.AST, bound: set[str]) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                    self.see(name, bound)

    def see(self, name: str, bound: set[str]) -> None:
        if name in self.names and name not in bound:
            self.early.add(name)
