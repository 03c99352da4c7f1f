"""Fix JX205: recompute a stored array at its last use, behind a barrier that defeats CSE."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Proof, Remedy


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield a copy of an array, computed at its last use.

    The name has to be assigned once and computed from an `arange`; the copy starts at a zero that
    XLA cannot see through.
    """
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
        f"Recompute `{name}` at its last use",
        (
            *asked.jax_import(),
            asked.before(
                last,
                f"{zero} = {asked.lax}.optimization_barrier(0)\n"
                f"{asked.indent(last)}{again} = {copy}",
            ),
            asked.replace(uses[-1], again),
        ),
    )


REMEDY = Remedy(
    "the array recomputed behind `optimization_barrier`",
    candidates,
    proof=Proof.FEWER,
)
