"""JX406: reverse-mode differentiation of a loop whose number of iterations is traced."""

from __future__ import annotations

from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "Reverse-mode differentiation of a loop of unknown length.")


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize JAX's `ValueError` by its first words."""
    if not error.message.startswith(
        "Reverse-mode differentiation does not work for lax.while_loop"
    ):
        return None
    return Violation(
        "reverse-mode differentiation of a loop of unknown length",
        help="use `jax.lax.scan`, pass Python integers as bounds to `fori_loop`, or differentiate "
        "in forward mode with `jax.jacfwd` or `jax.jvp`",
        notes=(
            "the loop is a `while_loop`, or a `fori_loop` whose bounds are traced",
            "the backward pass needs values of every iteration, and their number is unknown",
        ),
    )
