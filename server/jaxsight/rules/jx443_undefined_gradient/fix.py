"""JX443: differentiate at a float in place of an integer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx443_undefined_gradient.rule import AtInteger


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the call with a float in place of the integer."""
    data, call = context.finding.data, context.node
    if isinstance(data, AtInteger) and isinstance(call, ast.Call):
        integer = call.args[data.position]
        edit = context.replace(integer, f"{context.text(integer)}.0")
        yield Candidate("Differentiate at a float", (edit,), same=False)


REMEDY = Remedy("a float where a derivative is taken (unsafe)", candidates)
