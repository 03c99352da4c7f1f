"""The operands of the expression that raised, and their types where they were seen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.meshes.divided import ArrayType
from jaxsight.rules.failure_text import operand, operand_text
from jaxsight.rules.text.expressions import operands_of, parsed
from jaxsight.wire.observations import Failure


def sources(expression: str) -> list[ast.expr]:
    """Return the operands of an operator or the arguments of a call, in order.

    An array whose method is called comes first; the items of a list or tuple stand for it.
    """
    match node := parsed(expression):
        case ast.Call(func=function, args=arguments):
            return [*_receiver(function), *_items(arguments)]
        case ast.Subscript(value=array):
            return [array]
        case _:
            return operands_of(node)


def _receiver(function: ast.expr) -> Iterator[ast.expr]:
    """Yield `x` of `x.sum`, but no module: whether it was seen decides."""
    if isinstance(function, ast.Attribute):
        yield function.value


def _items(arguments: list[ast.expr]) -> Iterator[ast.expr]:
    for argument in arguments:
        if isinstance(argument, ast.List | ast.Tuple):
            yield from argument.elts
        elif not isinstance(argument, ast.Starred):
            yield argument


def arrays(failure: Failure, expression: str) -> list[tuple[str, ArrayType]]:
    """Return the operands that are arrays, in order: their sources and types."""
    found = []
    for source in sources(expression):
        type = operand(failure, source)
        if type is not None:
            found.append((ast.unparse(source), type))
    return found


def is_key(failure: Failure, source: ast.expr | None) -> bool:
    """Whether a part of the expression is a typed PRNG key, or an array of keys."""
    return operand_text(failure, source).startswith("key<")


def rank(failure: Failure, source: ast.expr) -> int | None:
    """Return how many axes a part of the expression has, 0 for a number; `None` if unknown."""
    text = operand_text(failure, source)
    array = re.fullmatch(r"[\w<>]+\[([\d,]*)\]", text)
    if array is not None:
        return len(re.findall(r"\d+", array[1]))
    number = re.fullmatch(r"-?[\d.]+(?:e[-+]?\d+)?", text or ast.unparse(source))
    return 0 if number is not None else None
