"""Build the nodes that are added to syntax trees, and read those that are there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

LOAD, STORE = ast.Load(), ast.Store()
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


def name(text: str) -> ast.Name:
    """Return a name that is read."""
    return ast.Name(text, LOAD)


def call(function: str | ast.expr, *arguments: int | str | ast.expr) -> ast.Call:
    """Return a call of a function, or of that with a name; other arguments are constants."""
    called = name(function) if isinstance(function, str) else function
    values = [a if isinstance(a, ast.expr) else ast.Constant(a) for a in arguments]
    return ast.Call(called, values, [])


def assign(value: ast.expr, *targets: str) -> ast.stmt:
    """Return an assignment to names."""
    return ast.Assign([ast.Name(target, STORE) for target in targets], value)


def thunk(value: ast.expr) -> ast.expr:
    """Return a function without parameters that evaluates an expression."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, value), value)


def placed(node: Node, at: ast.AST) -> Node:
    """Place a new node, and those in it without a place, at another one."""
    return ast.fix_missing_locations(ast.copy_location(node, at))


def begin(node: Function | ast.Module, statements: Iterable[ast.stmt]) -> None:
    """Add statements to the beginning of a function or module.

    They are behind its docstring and imports from `__future__`.
    """
    start = 1 if ast.get_docstring(node, clean=False) is not None else 0
    for each in node.body[start:]:
        if not isinstance(each, ast.ImportFrom) or each.module != "__future__":
            break
        start += 1
    node.body[start:start] = statements


def parameters(node: Function | ast.Lambda) -> list[ast.arg]:
    """Return the parameters of a function in their order."""
    return [arg for arg in ast.iter_child_nodes(node.args) if isinstance(arg, ast.arg)]


def own_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of functions and classes inside."""
    queue: list[ast.AST] = [*body]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))
