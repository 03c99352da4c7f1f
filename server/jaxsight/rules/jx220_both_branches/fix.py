"""JX220: compute the branches in a `cond`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx220_both_branches.rule import BothBranches


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `cond(pred, lambda: a, lambda: b)` for `where(pred, a, b)` that contains the work."""
    data = context.finding.data
    if not isinstance(data, BothBranches):
        return
    for call in context.find(ast.Call):
        if context.called(call.func) not in ("jax.numpy.where", "jax.lax.select"):
            continue
        if call.keywords or len(call.args) != 3 or not all(map(context.is_pure, call.args)):
            return
        predicate, *cases = map(context.text, call.args)
        if any(
            not expression or expression not in " ".join(case.split())
            for expression, case in zip(data.expressions, cases, strict=True)
        ):
            return
        true, false = cases
        text = f"{context.lax}.cond({predicate}, lambda: {true}, lambda: {false})"
        yield Candidate(
            "Compute one of the branches with `cond`",
            (*context.jax_import(), context.replace(call, text)),
        )
        return


# One branch runs in place of two; the figures count both.
REMEDY = Remedy("`jax.lax.cond` in place of the selection", candidates, trades=figures.ALL)
