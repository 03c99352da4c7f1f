"""JX302: a static argument must be hashable, because JAX looks up compiled functions by it."""

from __future__ import annotations

import re

from jaxsight.rules.exceptions import jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX302",
    "unhashable-static-argument",
    "Unhashable value passed as a static argument.",
)
_TYPE = re.compile(r"object of type <class '([^']+)'>")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognize JAX's `ValueError` by its first words."""
    if not failure.message.startswith("Non-hashable static arguments are not supported"):
        return None
    found = _TYPE.search(failure.message)
    return Noticed(
        f"static argument is an unhashable {quoted(found[1] if found else '', 'object')}",
        help="pass a tuple or a frozen dataclass, or do not make the argument static",
        notes=("JAX looks up compiled functions by the hash of their static arguments",),
        url=jax_page(failure),
    )
