"""Fix JX207: unroll a short loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit, Range

_LOOPS = ("jax.lax.fori_loop", "jax.lax.scan")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `unroll=True` for the loop, instead of a number that is given."""
    for call in context.find(ast.Call):
        if context.called(call.func) not in _LOOPS or not call.args:
            continue
        argument = keyword(call, "unroll")
        if argument is not None and not isinstance(argument, ast.Constant):
            return  # the caller decides
        if argument is not None:
            edit = context.replace(argument, "True")
        else:
            last = context.arguments(call)[-1].end
            edit = Edit(Range(last, last), ", unroll=True")
        yield Candidate("Unroll the loop", (edit,))
        return


# Fewer kernels, for larger temporaries.
REMEDY = Remedy(
    "`unroll=True` for the loop",
    candidates,
    proof=Proof.FEWER,
    trades=frozenset({figures.STORED}),
)
