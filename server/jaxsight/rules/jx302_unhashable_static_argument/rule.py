"""JX302: a static argument must be hashable, because JAX looks compiled functions up by it."""

from __future__ import annotations

import re

from jaxsight.rules.exceptions import jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX302",
    "unhashable-static-argument",
    "An unhashable value is given as a static argument.",
)
_TYPE = re.compile(r"object of type <class '([^']+)'>")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises JAX's `ValueError` by its first words."""
    if not failure.message.startswith("Non-hashable static arguments are not supported"):
        return None
    found = _TYPE.search(failure.message)
    kind = f" `{found.group(1)}`" if found else "n object"
    return Noticed(
        f"{quoted(expression, 'This call')} gives a{kind} as a static argument, which must be hashable. "
        "Give a tuple or a frozen dataclass, or do not make the argument static.",
        url=jax_page(failure),
    )
