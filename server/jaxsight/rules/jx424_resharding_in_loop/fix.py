"""Fix JX424: replicate the array once before the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.figures import LAUNCHED, MOVED, STORED
from jaxsight.rules.fixing.meshes import constrained, meshes
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.text.names import bound_in

_LOOPS = ("jax.lax.fori_loop", "jax.lax.scan", "jax.lax.while_loop")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the constraint of each array that a loop's body captures in the finding."""
    reads = {node.id for node in context.find(ast.Name)}
    for part in context.around(context.nodes[0]) if context.nodes else ():
        if isinstance(part, ast.Lambda | ast.FunctionDef):
            reads.difference_update(bound_in(part))
        if not isinstance(part, ast.Call) or context.called(part.func) not in _LOOPS:
            continue
        statement, function = context.statement(part), context.function(part)
        if statement is None or function is None:
            return
        for name in sorted(reads.intersection(bound_in(function))):
            for mesh in meshes(context):
                line = f"{name} = {constrained(context, name, mesh, '')}"
                edits = (context.before(statement, line), *context.jax_import())
                yield Candidate(f"Replicate `{name}` before the loop", edits)
        return


REMEDY = Remedy(
    "the array replicated once before the loop",
    candidates,
    proof=Proof.COMMUNICATED,
    trades=frozenset({LAUNCHED, STORED, MOVED}),
)
