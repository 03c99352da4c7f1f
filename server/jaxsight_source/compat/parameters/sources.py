"""The transformations that created an equation. Applies to JAX 0.8 to 0.12.

Private API used: `JaxprEqn.source_info.name_stack`, whose text names the enclosing transformations
(`transpose(jvp())`).
"""

from __future__ import annotations

from typing import Any


def is_derivative(equation: Any) -> bool:
    """Return whether differentiation created or re-created an equation."""
    return "jvp(" in str(equation.source_info.name_stack)


def is_backward(equation: Any) -> bool:
    """Return whether an equation computes cotangents.

    JAX gives it the source location of the equation that it transposes (`backward_pass` in ad.py).
    """
    return "transpose(" in str(equation.source_info.name_stack)
