"""JX400: an exception that no other rule recognizes, in its own words."""

from __future__ import annotations

from jaxsight.rules.failure_text import jax_page, repeated
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.observations import Failure

RULE = Rule("JX400", "trace-error", "Function cannot be traced with its example inputs.")


@RULE.explains_any
def explain(failure: Failure) -> Violation:
    """Repeat the exception."""
    message, notes = repeated(failure)
    return Violation(message, notes=notes, url=jax_page(failure))
