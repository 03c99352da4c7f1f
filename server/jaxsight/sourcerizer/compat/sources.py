"""What equations know of how they came about. Holds for JAX 0.8 to 0.12.

Private API used: `JaxprEqn.source_info.name_stack`, whose text names the transformations around
(`transpose(jvp())`).
"""

from __future__ import annotations

from typing import Any


def is_derivative(equation: Any) -> bool:
    """Whether differentiation made an equation, or made it anew."""
    return "jvp(" in str(equation.source_info.name_stack)


def is_backward(equation: Any) -> bool:
    """Whether an equation computes cotangents: the place that JAX gives it is that of the equation
    that it transposes.
    """
    return "transpose(" in str(equation.source_info.name_stack)
