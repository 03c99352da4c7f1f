"""JX402: a traced value outlived the function that made it."""

from __future__ import annotations

from jaxsight.findings.explained import Explained, explained, is_a, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX402"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises `UnexpectedTracerError` and the leak checker's report."""
    leak_check = failure.message.startswith("Leaked ")
    if not (is_a(failure, "UnexpectedTracerError") or leak_check):
        return None
    where = quoted(expression, "The function")
    return explained(
        CODE,
        f"{where} uses a traced value that another trace made and kept, for example in a global, a list, an attribute or a "
        "closure. Return the value from the function that makes it, and pass it on as an argument.",
        failure,
    )
