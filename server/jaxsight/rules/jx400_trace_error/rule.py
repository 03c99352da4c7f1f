"""JX400: an exception that no other rule recognizes, in its own words."""

from __future__ import annotations

from jaxsight.rules.exceptions import jax_page, said
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule("JX400", "trace-error", "The function cannot be traced with its example inputs.")


def explain(failure: Failure) -> Noticed:
    """Repeat the exception."""
    return Noticed(said(failure), url=jax_page(failure))
