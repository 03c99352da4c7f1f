"""JX451: create an array of zeros."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx451_uninitialized.rule import Empty


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `zeros` in place of each `empty` of the function, and of the one that was reported."""
    empty = context.finding.data
    if not isinstance(empty, Empty):
        return
    function = context.function(context.node) or context.subject
    calls = [
        node
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Call)
        and context.called(node.func) == f"jax.numpy.{empty.function}"
        and isinstance(node.func, ast.Attribute)
    ]
    zeros = empty.function.replace("empty", "zeros")
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        name = f"{context.text(call.func.value)}.{zeros}"
        yield Candidate(f"Use `{name}`", (context.replace(call.func, name),), same=False)


REMEDY = Remedy.correcting("`jnp.zeros` instead of `jnp.empty` (unsafe)", candidates)
