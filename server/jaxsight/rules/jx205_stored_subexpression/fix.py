"""JX205: what is stored for a later kernel, computed again there, behind a barrier that hides that it is the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Proof, Remedy


def candidates(asked: Asked) -> Iterator[Candidate]:
    """For a name that is assigned once, from an `arange`, and read again: the last reading gets a copy that starts at a hidden zero."""
    node = next(iter(asked.nodes), None)
    function = asked.function(node) if node is not None else None
    if node is None or function is None:
        return
    statement = node if isinstance(node, ast.Assign) else asked.statement(node)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return
    counters = [
        each
        for each in ast.walk(value)
        if isinstance(each, ast.Call) and asked.called(each.func) == "jax.numpy.arange"
    ]
    uses = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    uses.sort(key=lambda each: (each.lineno, each.col_offset))
    last = asked.statement(uses[-1]) if len(uses) > 1 else None
    if last is None or not counters:
        return
    zero, again = asked.fresh("zero"), asked.fresh(f"{name}_again")
    whole, part = asked.text(value), asked.text(counters[0])
    copy = whole.replace(part, f"({zero} + {part})", 1)
    yield Candidate(
        f"Compute `{name}` again where it is read last",
        (
            *asked.jax_import(),
            asked.before(
                last,
                f"{zero} = {asked.lax}.optimization_barrier(0)\n{asked.indent(last)}{again} = {copy}",
            ),
            asked.replace(uses[-1], again),
        ),
    )


REMEDY = Remedy(
    "the array computed again behind a barrier",
    candidates,
    proof=Proof.FEWER,
)
