"""JX402: a traced value outlived the function that made it."""

from __future__ import annotations

from jaxsight.rules.exceptions import is_a, jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX402",
    "leaked-tracer",
    "A traced value is used outside the function that made it.",
)


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises `UnexpectedTracerError` and the leak checker's report."""
    leak_check = failure.message.startswith("Leaked ")
    if not (is_a(failure, "UnexpectedTracerError") or leak_check):
        return None
    where = quoted(expression, "The function")
    return Noticed(
        f"{where} uses a traced value that another trace made and kept, for example in a global, a list, an attribute or a "
        "closure. Return the value from the function that makes it, and pass it on as an argument.",
        url=jax_page(failure),
    )
