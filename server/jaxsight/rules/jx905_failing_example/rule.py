"""JX905: the Python expression of an example input raises an exception."""

from __future__ import annotations

from jaxsight.rules.failure_text import said
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import MOST, quoted
from jaxsight.wire.observations import Failure

RULE = Rule(
    __name__, "Expression of an example input raises an exception.", failures=("jaxsight.NotAMesh",)
)


@RULE.explains_inputs
def explain(failure: Failure) -> Violation:
    """Return the exception that was raised before the function was called."""
    subject = f"example for {quoted(failure.argument)}"
    raised = said(failure)
    message = f"{subject} raises {raised}"
    if len(message) <= MOST and "\n" not in message:
        return Violation(message)
    return Violation(f"{subject} raises an exception", notes=(raised,))
