"""JX303: create the jitted function once, before the function that uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.text.expressions import FunctionNode


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the jitted function as a name of the module, if all that it uses is known there."""
    call = next(context.find(ast.Call), None)
    if not isinstance(call, ast.Call) or isinstance(context.parents.get(call), FunctionNode):
        return  # a decorator re-creates it wherever it is written
    function = context.function(call)
    name = context.fresh(
        f"_{function.name.strip('_') if function is not None else 'function'}_jitted"
    )
    yield from context.hoisted(call, name, f"Jit it once, as `{name}`")


REMEDY = Remedy(
    "the jitted function, created once before the function",
    candidates,
)
