"""Find Python integers that do not fit in the dtype that JAX converts them to."""

from __future__ import annotations

import ast

from jaxsight.rules.jx307_integer_overflow.integers import (
    Integers,
    holds_note,
    integer_literal,
)
from jaxsight.rules.program.integers.intervals import limits
from jaxsight.rules.text.expressions import Expression, name_of
from jaxsight.rules.violation import Violation
from jaxsight.wire.primitives import COMPARISONS
from jaxsight.wire.program import LITERAL, Step

_FILLS = {"full": 1, "full_like": 1, "clip": 1, "where": 1, "maximum": 0, "minimum": 0, "set": 0}
"""By name of a call, the first argument that may be an element of its result."""


def literal_too_large(integers: Integers, step: Step, node: Expression) -> Violation | None:
    """Find a Python integer that does not fit in the dtype that JAX converts it to."""
    dtype = integers.dtype(step)
    within = limits(dtype)
    if within is None:
        return None
    if step.primitive == "convert_element_type":
        value = integers.flow.value(step.operands[0])
        operand = integers.intervals.of(step.operands[0]) if value.origin == LITERAL else None
        literals = _literals(node, operand.one) if operand is not None else []
    else:
        literals = [number for number in _arguments(node) if not _may_be(number, node, within)]
    for number in literals:
        if within[0] <= number <= within[1]:
            continue
        used = (number - within[0]) % (within[1] - within[0] + 1) + within[0]
        operands = map(integers.flow.value, step.operands)
        if step.primitive != "convert_element_type" and not any(
            value.origin == LITERAL and value.said in (str(used), str(number)) for value in operands
        ):
            continue
        verb = "compares with" if step.primitive in COMPARISONS else "uses"
        return Violation(
            f"`{number}` does not fit in {dtype}: JAX {verb} {used} instead",
            step.path,
            help=f"use an integer from {within[0]} to {within[1]}, or convert the array to "
            "a wider dtype first",
            notes=(holds_note(dtype),),
        )
    return None


def _arguments(node: Expression) -> list[int]:
    """Return the literals that an expression converts to the dtype of its array."""
    match node:
        case ast.BinOp(left=left, right=right):
            nodes = [left, right]
        case ast.AugAssign(value=value):
            nodes = [value]
        case ast.Compare(left=left, comparators=[right]):
            nodes = [left, right]
        case ast.Call(args=args) if name_of(node) in _FILLS:
            keywords = [
                keyword.value
                for keyword in node.keywords
                if keyword.arg in ("fill_value", "min", "max", "a_min", "a_max", "x", "y")
            ]
            nodes = [*args[_FILLS[name_of(node)] :], *keywords]
        case _:
            nodes = []
    return [number for node in nodes if (number := integer_literal(node)) is not None]


def _may_be(number: int, node: Expression, within: tuple[int, int]) -> bool:
    """Return whether a literal that does not fit gives the right result all the same.

    Such are `x + -1`, and `-1` as a marker of missing values.
    """
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            span = within[1] - within[0]
            if isinstance(op, ast.Add | ast.Sub):
                return within[0] == 0 and -span <= number < 0
            return not isinstance(op, ast.Mult)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            return number == -1
        case _:
            return False


def _literals(node: Expression, number: int | None) -> list[int]:
    """Return a number if a call is given it as a literal."""
    if number is None or not isinstance(node, ast.Call) or name_of(node) == "astype":
        return []
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [number] if any(integer_literal(argument) == number for argument in arguments) else []
