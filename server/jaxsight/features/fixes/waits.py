"""Prove by the text that a change adds nothing but waits.

`jax.block_until_ready` returns what it is given, so a program that calls it around expressions
computes the same (https://docs.jax.dev/en/latest/_autosummary/jax.block_until_ready.html).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from jaxsight.rules.text.expressions import dotted
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of
from jaxsight.text.names import bound_by, bound_in, read_in


def are_all_that_differs(before: Module, after: Module) -> bool:
    """Return whether two texts are the same program but for waits, and an import of `jax`."""
    without = [_without_waits(module) for module in (before, after)]
    return without[0] is not None and without[0] == without[1]


def _without_waits(module: Module) -> list[str] | None:
    """Return a module's statements without waits and `import jax`.

    `None` if it is not clear what waits.
    """
    if any(chunk.broken is not None for chunk in module.chunks):
        return None
    body = [
        statement
        for chunk in module.chunks
        for statement in copy.deepcopy(tree_of(chunk.text)).body
    ]
    nodes = [node for statement in body for node in ast.walk(statement)]
    aliases = [
        alias
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "jax" or (alias.name.startswith("jax.") and alias.asname is None)
    ]
    names = {alias.asname or "jax" for alias in aliases}
    others = (name for node in nodes if node not in aliases for name in bound_by(node))
    if not names.isdisjoint(others):
        return None
    kept = _Remover(frozenset(f"{name}.block_until_ready" for name in names)).statements(body)
    texts = map(ast.unparse, kept)
    return [text for text in texts if text != "import jax"]


class _Remover(ast.NodeTransformer):
    """Removes waits: those around expressions, and those of what a loop carries after it."""

    def __init__(self, waits: frozenset[str]) -> None:
        self._waits = waits

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements without waits."""
        kept: list[ast.stmt] = []
        for number, statement in enumerate(body):
            before = body[number - 1] if number else None
            if before is None or not self._waits_for_loop(statement, before):
                kept.append(self.visit(statement))
        return kept

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.statements(value))
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(args=[argument], keywords=[]) if not isinstance(argument, ast.Starred):
                if dotted(node.func) in self._waits:
                    return argument
        return node

    def _waits_for_loop(self, statement: ast.stmt, before: ast.stmt) -> bool:
        """Whether a statement only waits for a name that the loop before it reads and binds."""
        match statement:
            case ast.Expr(value=ast.Call(func=function, args=[ast.Name(id=name)], keywords=[])):
                is_loop = isinstance(before, ast.For | ast.While | ast.AsyncFor)
                is_carried = name in bound_in(before) and name in read_in(before)
                return dotted(function) in self._waits and is_loop and is_carried
            case _:
                return False
