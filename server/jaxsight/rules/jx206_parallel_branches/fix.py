"""Fix JX206: serialize independent iterations of a Python loop with a barrier."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.source.text import Edit, Range
from jaxsight.text.names import read_in


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `total, x = optimization_barrier((total, x))` at the end of the loop body.

    The next iteration reads an `x` that depends on the total of this one.
    """
    loop = next((n for n in context.around(context.node) if isinstance(n, ast.For)), None)
    function = context.function(loop)
    if loop is None or function is None or loop.orelse:
        return
    last = loop.body[-1]
    if not context.is_alone(last):
        return
    totals = dict.fromkeys(
        target.id
        for statement in loop.body
        for target in _targets(statement)
        # `total = total + …`, `total += …`
        if isinstance(target, ast.Name) and target.id in read_in(statement)
    )
    parameters = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    read = dict.fromkeys(
        node.id
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and node.id in parameters
        and context.aval_of(node) is not None
    )
    names = ", ".join([*totals, *(name for name in read if name not in totals)])
    if not totals or len(read) != 1:
        return
    end = context.range(last).end
    line = f"\n{context.indent(last)}{names} = {context.lax}.optimization_barrier(({names}))"
    yield Candidate(
        "Serialize the iterations with an `optimization_barrier`",
        (*context.jax_import(), Edit(Range(end, end), line)),
    )


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AugAssign(target=target):
            return [target]
        case _:
            return []


# Less memory at once, for kernels that run one after the other.
REMEDY = Remedy(
    "`optimization_barrier` at the end of the body of a Python loop",
    candidates,
    proof=Proof.SMALLER,
    trades=frozenset({figures.LAUNCHED, figures.MOVED, figures.TIME}),
)
