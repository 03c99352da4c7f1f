"""Fix JX205: recompute a stored array at its last use, behind a barrier that defeats CSE."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.rules.fixing.syntax import reads_of


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield a copy of an array, computed at its last use.

    The name has to be assigned once and computed from an `arange`; the copy starts at a zero that
    XLA cannot see through.
    """
    node = context.node
    function = context.function(node)
    if node is None or function is None:
        return
    statement = node if isinstance(node, ast.Assign) else context.statement(node)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return
    counters = [
        node
        for node in ast.walk(value)
        if isinstance(node, ast.Call) and context.called(node.func) == "jax.numpy.arange"
    ]
    uses = reads_of(name, function)
    last = context.statement(uses[-1]) if len(uses) > 1 else None
    if last is None or not counters:
        return
    zero, again = context.fresh("zero"), context.fresh(f"{name}_again")
    source, part = context.text(value), context.text(counters[0])
    copy = source.replace(part, f"({zero} + {part})", 1)
    yield Candidate(
        f"Recompute `{name}` at its last use",
        (
            *context.jax_import(),
            context.before(
                last,
                f"{zero} = {context.lax}.optimization_barrier(0)\n"
                f"{context.indent(last)}{again} = {copy}",
            ),
            context.replace(uses[-1], again),
        ),
    )


REMEDY = Remedy(
    "the array recomputed behind `optimization_barrier`",
    candidates,
    proof=Proof.FEWER,
)
