"""JX406: reverse-mode differentiation through a loop whose length is not known while tracing."""

from __future__ import annotations

from jaxsight.findings.explained import Explained, explained, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX406"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises JAX's `ValueError` by its first words."""
    if not failure.message.startswith(
        "Reverse-mode differentiation does not work for lax.while_loop"
    ):
        return None
    return explained(
        CODE,
        f"{quoted(expression, 'This call')} is differentiated in reverse through a `while_loop`, or a `fori_loop` whose bounds are traced: "
        "the number of steps to keep is not known. Use `jax.lax.scan`, give `fori_loop` bounds that are Python integers, "
        "or differentiate forward with `jax.jacfwd` or `jax.jvp`.",
        failure,
    )
