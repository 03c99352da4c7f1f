"""JX404: an index that is known while tracing lies outside its axis."""

from __future__ import annotations

from jaxsight.findings.explained import Explained, explained, first_paragraph, is_a, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX404"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises `IndexError`s that speak of bounds (not of too many indices, nor of Python lists)."""
    message = failure.message
    if not is_a(failure, "IndexError") or (
        "out of bounds" not in message and "out of range" not in message
    ):
        return None
    return explained(
        CODE,
        f"{quoted(expression, 'This index')} is out of bounds: {first_paragraph(message)}",
        failure,
    )
