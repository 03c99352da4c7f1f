"""JX220: compute the branches in a `cond`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes import effects
from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.rules.jx220_both_branches.rule import BothBranches


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `cond(pred, lambda: a, lambda: b)` for `where(pred, a, b)` that contains the work."""
    data = asked.finding.data
    if not isinstance(data, BothBranches):
        return
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        if asked.called(call.func) not in ("jax.numpy.where", "jax.lax.select"):
            continue
        if call.keywords or len(call.args) != 3 or not all(map(asked.is_pure, call.args)):
            return
        predicate, *cases = map(asked.text, call.args)
        if any(
            not expression or expression not in " ".join(case.split())
            for expression, case in zip(data.expressions, cases, strict=True)
        ):
            return
        true, false = cases
        text = f"{asked.lax}.cond({predicate}, lambda: {true}, lambda: {false})"
        yield Candidate(
            "Compute one of the branches with `cond`",
            (*asked.jax_import(), asked.replace(call, text)),
        )
        return


# One branch runs in place of two; the figures count both.
REMEDY = Remedy("`jax.lax.cond` in place of the selection", candidates, trades=effects.ALL)
