"""JX302: a static argument must be hashable, because JAX looks up compiled functions by it."""

from __future__ import annotations

import re

from jaxsight.rules.failure_text import jax_page
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX302",
    "unhashable-static-argument",
    "Unhashable value passed as a static argument.",
)
_TYPE = re.compile(r"object of type <class '([^']+)'>")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize JAX's `ValueError` by its first words."""
    if not failure.message.startswith("Non-hashable static arguments are not supported"):
        return None
    match = _TYPE.search(failure.message)
    return Violation(
        f"static argument is an unhashable {quoted(match[1] if match else '', 'object')}",
        help="pass a tuple or a frozen dataclass, or do not make the argument static",
        notes=("JAX looks up compiled functions by the hash of their static arguments",),
        url=jax_page(failure),
    )
