"""JX303: create the jitted function once, before the function that uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, FunctionNode
from jaxsight.engine.fixes.remedy import Remedy


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield the jitted function as a name of the module, if all that it uses is known there."""
    call = next(asked.find(ast.Call), None)
    if not isinstance(call, ast.Call) or isinstance(asked.parents.get(call), FunctionNode):
        return  # a decorator re-creates it wherever it is written
    function = asked.function(call)
    name = asked.fresh(
        f"_{function.name.strip('_') if function is not None else 'function'}_jitted"
    )
    yield from asked.hoisted(call, name, f"Jit it once, as `{name}`")


REMEDY = Remedy(
    "the jitted function, created once before the function",
    candidates,
)
