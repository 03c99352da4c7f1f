"""JX403: the same PRNG key is consumed twice, so two draws that should differ are the same."""

from __future__ import annotations

from jaxsight.findings.explained import Explained, explained, is_a, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX403"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises the error of JAX's key-reuse checker (`jax_debug_key_reuse`)."""
    if not is_a(failure, "KeyReuseError"):
        return None
    return explained(
        CODE,
        f"{quoted(expression, 'This call')} uses a PRNG key that was used before: both draws are the same numbers. "
        "Split it first: `key, subkey = jax.random.split(key)`.",
        failure,
    )
