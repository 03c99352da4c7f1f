"""JX905: the Python expression of an example input raises an exception."""

from __future__ import annotations

from jaxsight.rules.exceptions import quoted, said
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.wire.observations import Failure

RULE = Rule("JX905", "failing-example", "Expression of an example input raises an exception.")

_LONGEST = 100
"""Characters of a message."""


def explain(failure: Failure) -> Noticed:
    """Return the exception that was raised before the function was called."""
    what = f"example for {quoted(failure.argument)}" if failure.argument else "doctest call"
    raised = said(failure)
    message = f"{what} raises {raised}"
    if len(message) <= _LONGEST and "\n" not in message:
        return Noticed(message)
    return Noticed(f"{what} raises an exception", notes=(raised,))
