"""JX302: a static argument must be hashable, because JAX looks compiled functions up by it."""

from __future__ import annotations

import re

from jaxsight.findings.explained import Explained, explained, quoted
from jaxsight.tracer.protocol import Failure

CODE = "JX302"
_TYPE = re.compile(r"object of type <class '([^']+)'>")


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises JAX's `ValueError` by its first words."""
    if not failure.message.startswith("Non-hashable static arguments are not supported"):
        return None
    found = _TYPE.search(failure.message)
    kind = f" `{found.group(1)}`" if found else "n object"
    return explained(
        CODE,
        f"{quoted(expression, 'This call')} gives a{kind} as a static argument, which must be hashable. "
        "Give a tuple or a frozen dataclass, or do not make the argument static.",
        failure,
    )
