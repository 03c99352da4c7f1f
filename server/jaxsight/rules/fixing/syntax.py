"""Read arguments, numbers and names off syntax trees."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return a keyword argument."""
    return next((each for each in call.keywords if each.arg == name), None)


def integer(node: ast.expr | None) -> int | None:
    """Return the value of a whole number, as written."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Tuple(elts=[one]):
            return integer(one)
        case _:
            return None


def same(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two expressions have the same syntax tree."""
    return ast.dump(one) == ast.dump(other)


def free_names(node: ast.AST) -> set[str]:
    """Return the names that an expression reads and does not bind."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return {each.id for each in names} - bound - set(dir(builtins))


def bound_names(scopes: Sequence[ast.AST]) -> set[str]:
    """Return the names that functions and classes bind locally."""
    found: set[str] = set()
    for scope in scopes:
        if not isinstance(scope, FunctionNode | ast.Lambda | ast.ClassDef):
            continue
        for each in ast.walk(scope):
            if isinstance(each, ast.arg):
                found.add(each.arg)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            elif isinstance(each, FunctionNode) and each is not scope:
                found.add(each.name)
    return found
