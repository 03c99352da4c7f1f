"""JX431: wait for the result before the clock is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.rules.jx431_timed_dispatch.rule import Dispatched
from jaxsight.source.text import Edit, Range
from jaxsight.text.names import bound_in, read_in

_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield a wait after the loop that carries the result, else one around what is dispatched.

    A loop that carries its result, as a training loop does, dispatches an iteration while the
    device computes the one before. A wait in each iteration would end that.
    """
    dispatched, node = context.finding.data, context.node
    if not isinstance(dispatched, Dispatched) or not isinstance(node, ast.expr):
        return
    wait = f"{context.imports.get('jax', 'jax')}.block_until_ready"
    loops = [around for around in context.around(node) if isinstance(around, _LOOPS)]
    statement = context.statement(node)
    if dispatched.loops and isinstance(statement, ast.Assign) and statement.value is node:
        loop = loops[dispatched.loops - 1]
        read = set(read_in(node))
        carried = [name for name in dict.fromkeys(bound_in(*statement.targets)) if name in read]
        if carried and context.is_alone(loop):
            end = context.range(loop).end
            line = f"{wait}({carried[0]})"
            edit = Edit(Range(end, end), f"\n{context.indent(loop)}{line}")
            yield Candidate(f"Wait after the loop: `{line}`", (*context.jax_import(), edit))
    edit = context.replace(node, f"{wait}({context.text(node)})")
    yield Candidate(f"Wait with `{wait}`", (*context.jax_import(), edit))


REMEDY = Remedy(
    "`jax.block_until_ready(f(x))`, or of what a loop carries after the loop",
    candidates,
    proof=Proof.WRITTEN,
)
