"""JX405: a NaN that `jax_debug_nans` stops at. (Guarding operands behind `where` is found without running.)"""

from __future__ import annotations

from jaxsight.findings.explained import Explained, explained, first_paragraph, is_a, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX405"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises the `FloatingPointError` of JAX's NaN and infinity checkers."""
    if not is_a(failure, "FloatingPointError"):
        return None
    return explained(
        CODE,
        f"{quoted(expression)} gives a value that is not a number: {first_paragraph(failure.message)}. "
        "Guard the operand itself, not only the result: `jnp.where(ok, f(jnp.where(ok, x, 1)), 0)`.",
        failure,
    )
