"""JX402: a traced value outlived the function that created it."""

from __future__ import annotations

import re

from jaxsight.rules.exceptions import is_a, jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX402",
    "leaked-tracer",
    "Traced value used outside the function that created it.",
)
_ORIGIN = re.compile(
    r"^The (?P<what>function being traced when the value leaked was|"
    r"leaked intermediate value was created on line) (?P<where>.+?)\.? *$",
    re.MULTILINE,
)


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognize `UnexpectedTracerError` and the report of the leak checker."""
    leak_check = failure.message.startswith("Leaked ")
    if not (is_a(failure, "UnexpectedTracerError") or leak_check):
        return None
    return Noticed(
        f"{quoted(expression, 'this function')} uses a tracer that leaked from another trace",
        help="return the value from the function that creates it, and pass it on as an argument",
        notes=(
            "tracers leak through globals, lists, attributes and closures",
            *(
                f"the {found['what']} {found['where']}"
                for found in _ORIGIN.finditer(failure.message)
            ),
        ),
        url=jax_page(failure),
    )
