"""Read single equations and values: parameters, sizes, and what is known of them."""

from __future__ import annotations

import math

from jaxsight.text.parsing import literal_in
from jaxsight.wire.program import CONSTANT, LITERAL, Step, Value


def parameter(step: Step, name: str) -> object:
    """Return a parameter of an equation as a Python value.

    Return its text where it is not a literal, and `None` where it is missing.
    """
    text = dict(step.parameters).get(name)
    if text is None:
        return None
    try:
        return literal_in(text)
    except ValueError:
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


def is_inexact(value: Value) -> bool:
    """Whether an array may have a derivative: one of floats or complex numbers."""
    return value.dtype.startswith(("float", "bfloat", "complex"))


def is_known(value: Value) -> bool:
    """Whether a value is known while compiling."""
    return value.origin in (CONSTANT, LITERAL)
