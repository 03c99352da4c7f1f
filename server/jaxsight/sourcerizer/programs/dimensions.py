"""Sizes as expressions of named ones, such as `2*b` and `floordiv(b, 2)` of `jax.export`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from jaxsight.sourcerizer.stablehlo import UnreadableProgram

Sizes: TypeAlias = Mapping[str, int]
"""Sizes by their names."""

_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"max": max, "min": min}

_POWER = re.compile(r"(\w+)\^(\d)\b")


def spelled(dimension: str) -> str:
    """Return a dimension, as JAX prints it, as an expression of Python.

    Raises:
        UnreadableProgram: it has an operation that is unknown here.
    """
    text = _POWER.sub(lambda found: "*".join([found[1]] * int(found[2])), dimension)
    try:
        return ast.unparse(_with_operators(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError):
        raise UnreadableProgram(f"the size {dimension[:80]} has an unknown operation") from None


def _with_operators(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(ast.Name("floordiv" | "mod" as name), [left, right], []):
            kind = ast.FloorDiv() if name == "floordiv" else ast.Mod()
            return ast.BinOp(_with_operators(left), kind, _with_operators(right))
        case ast.Call(ast.Name("max" | "min"), [left, right], []):
            return ast.Call(node.func, [_with_operators(left), _with_operators(right)], [])
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            return ast.BinOp(_with_operators(left), kind, _with_operators(right))
        case ast.UnaryOp(ast.USub(), operand):
            return ast.UnaryOp(ast.USub(), _with_operators(operand))
        case ast.Name() | ast.Constant(value=int()):
            return node
        case _:
            raise ValueError(ast.dump(node))


def names(expressions: Sequence[str]) -> tuple[str, ...]:
    """Return the names in expressions, in order."""
    found = (
        node.id
        for one in expressions
        for node in ast.walk(ast.parse(one, mode="eval"))
        if isinstance(node, ast.Name) and node.id not in _FUNCTIONS
    )
    return tuple(dict.fromkeys(found))


def size(expression: str, sizes: Sizes) -> int:
    """Return the value of an expression that `spelled` returned."""
    return _value(ast.parse(expression, mode="eval").body, sizes)


def _value(node: ast.expr, sizes: Sizes) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(name):
            return sizes[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, sizes)
        case ast.BinOp(left, kind, right):
            return _OPERATORS[type(kind)](_value(left, sizes), _value(right, sizes))
        case ast.Call(ast.Name(name), [left, right]):
            return _FUNCTIONS[name](_value(left, sizes), _value(right, sizes))
        case _:
            raise ValueError(ast.dump(node))


def linear(expression: str, name: str) -> tuple[int, int] | None:
    """Return the factor and the summand of an expression of one size: `2 * b + 1`; or None."""
    if names([expression]) != (name,):
        return None
    zero, one, two, many = (size(expression, {name: number}) for number in (0, 1, 2, 97))
    factor = one - zero
    is_linear = factor > 0 and two - one == factor and many == 97 * factor + zero
    return (factor, zero) if is_linear else None
