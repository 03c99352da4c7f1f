"""JX400: an exception that no other rule recognizes, in its own words."""

from __future__ import annotations

from jaxsight.rules.exceptions import jax_page, repeated
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.wire.observations import Failure

RULE = Rule("JX400", "trace-error", "Function cannot be traced with its example inputs.")


def explain(failure: Failure) -> Noticed:
    """Repeat the exception."""
    message, notes = repeated(failure)
    return Noticed(message, notes=notes, url=jax_page(failure))
