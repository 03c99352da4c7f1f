"""Read single equations and values: parameters, sizes, and what kind a primitive is of."""

from __future__ import annotations

import ast
import math

from jaxsight.wire.program import CONSTANT, LITERAL, Step, Value

ELEMENTWISE = frozenset(
    {
        "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh",
        "cbrt", "ceil", "clamp", "conj", "convert_element_type", "cos", "cosh", "digamma", "div",
        "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag",
        "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min",
        "mul", "ne", "neg", "nextafter", "not", "or", "pow", "real", "complex", "rem", "round",
        "rsqrt", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
        "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh", "xor", "copy",
        "copy_p",
    }
)  # fmt: skip
"""Primitives that compute each element of their result from one of each operand."""
SHAPED = frozenset(
    {
        "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev", "slice",
        "stack", "unstack", "split",
    }
)  # fmt: skip
"""Primitives that only move elements."""


def parameter(step: Step, name: str) -> object:
    """Return a parameter of an equation as a Python value.

    Return its text where it is not a literal, and `None` where it is missing.
    """
    text = dict(step.parameters).get(name)
    if text is None:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def numbers(step: Step, name: str) -> tuple[int, ...]:
    """Return a parameter that holds one integer or several; other parameters are empty."""
    parameter_value = parameter(step, name)
    if isinstance(parameter_value, int):
        return (parameter_value,)
    return (
        tuple(n for n in parameter_value if isinstance(n, int))
        if isinstance(parameter_value, tuple | list)
        else ()
    )


def elements(value: Value) -> int:
    """How many elements an array has."""
    return math.prod(value.shape)


def is_known(value: Value) -> bool:
    """Whether a value is known while compiling."""
    return value.origin in (CONSTANT, LITERAL)


def captured(step: Step) -> tuple[int, ...]:
    """Return the operands that a loop reads and does not change."""
    if step.primitive == "scan":
        trees = parameter(step, "ft_in")  # from JAX 0.12 on: trees of constants, carry and rows
        if isinstance(trees, tuple) and trees and isinstance(trees[0], tuple):
            return step.operands[: len(trees[0])]
        return step.operands[: sum(numbers(step, "num_consts"))]
    if step.primitive == "while":
        return step.operands[
            : sum((*numbers(step, "cond_nconsts"), *numbers(step, "body_nconsts")))
        ]
    return ()
