"""JX303: a `jit` that is made again each time, made once before the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, FunctionNode
from jaxsight.engine.fixes.remedy import Remedy


def candidates(asked: Asked) -> Iterator[Candidate]:
    """A name for the jitted function at the module's top level, where all that it uses is known there."""
    call = next(asked.find(ast.Call), None)
    if not isinstance(call, ast.Call) or isinstance(asked.parents.get(call), FunctionNode):
        return  # a decorator makes it anew wherever it stands
    function = asked.function(call)
    name = asked.fresh(
        f"_{function.name.strip('_') if function is not None else 'function'}_jitted"
    )
    yield from asked.hoisted(call, name, f"Make it once, as `{name}`")


REMEDY = Remedy(
    "the jitted function, made once before the function",
    candidates,
)
