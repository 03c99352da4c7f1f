"""Build the nodes that are added to the trees of programs, and read those that are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeVar

from jaxsight.tracer.observation import instrumentation

NAME = "__jaxsight_dry__"
"""The builtin that rewritten code calls: a `DryRuntime`."""
LOAD, STORE = ast.Load(), ast.Store()
Node = TypeVar("Node", bound=ast.AST)


def thunk(node: ast.expr) -> ast.expr:
    """Return a function without parameters that evaluates an expression."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)


def own_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of functions and classes inside."""
    queue: list[ast.AST] = [*body]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def plain(node: ast.expr) -> ast.expr:
    """Return an expression without the call that records it."""
    match node:
        case ast.Call(func=ast.Name(id=instrumentation.NAME), args=[_, value]):
            return plain(value)
        case _:
            return node


def name(text: str) -> ast.Name:
    """Return a name that is read."""
    return ast.Name(text, LOAD)


def assign(target: str, value: ast.expr) -> ast.stmt:
    """Return an assignment to a name."""
    return ast.Assign([ast.Name(target, STORE)], value)


def unless_unbound(statement: ast.stmt, otherwise: ast.stmt | None = None) -> ast.stmt:
    """Return a statement that does nothing if it reads a name that is not bound."""
    handler = ast.ExceptHandler(name("NameError"), None, [otherwise or ast.Pass()])
    return ast.Try([statement], [handler], [], [])


def runtime(attribute: str, at: ast.AST | None = None) -> ast.expr:
    """Return an attribute of the runtime."""
    node = ast.Attribute(name(NAME), attribute, LOAD)
    return placed(node, at) if at is not None else node


def call(method: str, *arguments: int | str | ast.expr, at: ast.AST | None = None) -> ast.Call:
    """Return a call of a method of the runtime."""
    values = [a if isinstance(a, ast.expr) else ast.Constant(a) for a in arguments]
    made = ast.Call(runtime(method), values, [])
    return placed(made, at) if at is not None else made


def statement(method: str, at: ast.stmt, *arguments: int | str | ast.expr) -> ast.stmt:
    """Return a statement that calls a method of the runtime."""
    return placed(ast.Expr(call(method, *arguments)), at)


def placed(node: Node, at: ast.AST) -> Node:
    """Place a new node, and those below it without a place, at another one."""
    ast.copy_location(node, at)
    for each in ast.walk(node):
        has_place = isinstance(each, ast.expr | ast.stmt | ast.excepthandler)
        if has_place and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
        match each:
            case ast.Attribute(value=ast.Name(id=name)) if name == NAME:
                # The line of a method's call is that where its name ends.
                each.end_lineno, each.end_col_offset = each.lineno, each.col_offset
            case _:
                pass
    return node
