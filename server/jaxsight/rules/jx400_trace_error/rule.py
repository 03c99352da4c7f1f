"""JX400: an exception that no other rule recognizes, in its own words."""

from __future__ import annotations

from jaxsight.rules.failure_text import repeated
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.observations import Failure

RULE = Rule(__name__, "Function cannot be traced with its example inputs.")


@RULE.explains_any
def explain(failure: Failure) -> Violation:
    """Repeat the exception."""
    message, notes = repeated(failure)
    return Violation(message, notes=notes)
