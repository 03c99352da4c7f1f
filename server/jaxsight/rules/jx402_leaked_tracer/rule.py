"""JX402: a traced value outlived the function that created it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.rules.failure_text import is_a, jax_page
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX402",
    "leaked-tracer",
    "Traced value used outside the function that created it.",
)
_LEAKED = re.compile(
    r"^The function being traced when the value leaked was (?P<function>\S+) at (?P<place>.+?) "
    r"traced for (?P<transformation>\w+)",
    re.MULTILINE,
)
_CREATED = re.compile(
    r"^The leaked intermediate value was created on line (?P<place>.+?) \(", re.MULTILINE
)


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize `UnexpectedTracerError` and the report of the leak checker."""
    leak_check = failure.message.startswith("Leaked ")
    if not (is_a(failure, "UnexpectedTracerError") or leak_check):
        return None
    return Violation(
        f"{quoted(expression, 'this function')} uses a tracer that leaked from another trace",
        help="return the value from the function that creates it, and pass it on as an argument",
        notes=(
            "tracers leak through globals, lists, attributes and closures",
            *_origin(failure.message),
        ),
        url=jax_page(failure),
    )


def _origin(message: str) -> Iterator[str]:
    """Yield where the value leaked and where it was created, if JAX says so."""
    if leaked := _LEAKED.search(message):
        function, line = leaked["function"], leaked["place"]
        yield f"it leaked from `{function}` at {line}, traced for `{leaked['transformation']}`"
    if created := _CREATED.search(message):
        yield f"it was created at {created['place']}"
