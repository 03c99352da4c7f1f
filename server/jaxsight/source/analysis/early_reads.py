"""Which names top-level statements may read before they bind them.

A loop variable is bound before it is read; `total` in `total = total + 1` is not. The analysis is
conservative: a name that may be read first counts as read first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from jaxsight.source.analysis.syntax_trees import blocks_of, captured


def read_before_bound(body: Sequence[ast.stmt], names: AbstractSet[str]) -> set[str]:
    """Return those of `names` that executing `body` may read before it binds them."""
    reader = _Reader(names)
    reader.block(body, set())
    return reader.early


class _Reader:
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
            case ast.Assign(targets=targets, value=value):
                self.read(value, bound)
                return self.targets(targets, bound)
            case ast.AnnAssign(target=target, value=value):
                self.read(statement.annotation, bound)
                if value is None:
                    return set()
                self.read(value, bound)
                return self.targets([target], bound)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.see(name, bound)
                self.read(value, bound)
                return {name}
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self.read(iterated, bound)
                self.block(statement.body, bound | self.targets([target], bound))
                self.block(statement.orelse, bound)
                return set()
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test, bound)
                return self.block(body, bound) & self.block(orelse, bound)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                inside = set(bound)
                for item in items:
                    self.read(item.context_expr, inside)
                    if item.optional_vars is not None:
                        inside |= self.targets([item.optional_vars], inside)
                return self.block(body, inside)
            case ast.Try(body=body, handlers=handlers) | ast.TryStar(body=body, handlers=handlers):
                after = self.block(body, bound)
                for handler in handlers:
                    if handler.type is not None:
                        self.read(handler.type, bound)
                    self.block(handler.body, bound)
                self.block(statement.orelse, after)
                return self.block(statement.finalbody, bound)
            case ast.Match(subject=subject, cases=cases):
                self.read(subject, bound)
                for case in cases:
                    self.read(case.pattern, bound)
                    inside = bound | captured(case.pattern)
                    if case.guard is not None:
                        self.read(case.guard, inside)
                    self.block(case.body, inside)
                return set()
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                self.read(statement, bound)
                return {name}
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                return {alias.asname or alias.name.partition(".")[0] for alias in names}
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
            names.update(
                node.id
                for node in ast.walk(target)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
        return names

    def read(self, node: ast.AST, bound: set[str]) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                    self.see(name, bound)

    def see(self, name: str, bound: set[str]) -> None:
        if name in self.names and name not in bound:
            self.early.add(name)
