"""JX905: an expression of the example inputs raises an exception."""

from __future__ import annotations

from jaxsight.rules.exceptions import said
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule("JX905", "failing-example", "The expression of an example input raises an error.")


def explain(failure: Failure) -> Noticed:
    """Repeat what was raised before the function was called."""
    what = f"The example for `{failure.argument}`" if failure.argument else "The doctest's call"
    return Noticed(f"{what} does not evaluate: {said(failure)}")
