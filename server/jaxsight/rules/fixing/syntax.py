"""Read arguments, numbers and names off syntax trees."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return a keyword argument."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def integer(node: ast.expr | None) -> int | None:
    """Return the value of a whole number, as written."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Tuple(elts=[element]):
            return integer(element)
        case _:
            return None


def same(first: ast.AST, second: ast.AST) -> bool:
    """Return whether two expressions have the same syntax tree."""
    return ast.dump(first) == ast.dump(second)


def free_names(node: ast.AST) -> set[str]:
    """Return the names that an expression reads and does not bind."""
    names = [node for node in ast.walk(node) if isinstance(node, ast.Name)]
    bound = {node.arg for node in ast.walk(node) if isinstance(node, ast.arg)}
    bound |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return {name.id for name in names} - bound - set(dir(builtins))


def bound_names(scopes: Sequence[ast.AST]) -> set[str]:
    """Return the names that functions and classes bind locally."""
    names: set[str] = set()
    for scope in scopes:
        if not isinstance(scope, FunctionNode | ast.Lambda | ast.ClassDef):
            continue
        for node in ast.walk(scope):
            if isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, FunctionNode) and node is not scope:
                names.add(node.name)
    return names
