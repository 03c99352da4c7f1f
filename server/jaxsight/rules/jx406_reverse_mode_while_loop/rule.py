"""JX406: reverse-mode differentiation through a loop whose length is not known while tracing."""

from __future__ import annotations

from jaxsight.rules.exceptions import jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX406",
    "reverse-mode-while-loop",
    "Reverse-mode differentiation meets a loop of unknown length.",
)


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises JAX's `ValueError` by its first words."""
    if not failure.message.startswith(
        "Reverse-mode differentiation does not work for lax.while_loop"
    ):
        return None
    return Noticed(
        f"{quoted(expression, 'This call')} is differentiated in reverse through a `while_loop`, or a `fori_loop` whose bounds are traced: "
        "the number of steps to keep is not known. Use `jax.lax.scan`, give `fori_loop` bounds that are Python integers, "
        "or differentiate forward with `jax.jacfwd` or `jax.jvp`.",
        url=jax_page(failure),
    )
