"""Build the nodes that are added to syntax trees, and read those that are there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

DRY = "__jaxsight_dry__"
"""The builtin that code calls which survives its failures: a `DryRuntime`."""
ERROR = "__jaxsight_error__"
"""The variable with an error in a handler."""
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


def constants(values: Iterable[str | int]) -> ast.expr:
    """Return a tuple of constants."""
    return ast.Tuple([ast.Constant(value) for value in values], LOAD)


def runtime(attribute: str) -> ast.expr:
    """Return an attribute of the runtime of dry runs."""
    return ast.Attribute(name(DRY), attribute, LOAD)


def dry(method: str, *arguments: int | str | ast.expr) -> ast.Call:
    """Return a call of a method of the runtime of dry runs."""
    return call(runtime(method), *arguments)


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


def tried(at: ast.AST, body: list[ast.stmt], after: list[ast.stmt]) -> ast.stmt:
    """Return statements with a handler for all errors."""
    handler = ast.ExceptHandler(name("BaseException"), ERROR, after)
    return ast.copy_location(ast.Try(body, [handler], [], []), at)


def unless_unbound(statement: ast.stmt, otherwise: ast.stmt | None = None) -> ast.stmt:
    """Return a statement that does nothing if it reads a name that is not bound."""
    handler = ast.ExceptHandler(name("NameError"), None, [otherwise or ast.Pass()])
    return ast.Try([statement], [handler], [], [])


def complete(tree: ast.Module) -> None:
    """Place the nodes that have no place in a tree at those around them."""
    for node in ast.walk(ast.fix_missing_locations(tree)):
        match node:
            case ast.Attribute(value=ast.Name(id=name)) if name.startswith("__jaxsight_"):
                # The line of a method's call is that where its name ends.
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
            case _:
                pass


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
