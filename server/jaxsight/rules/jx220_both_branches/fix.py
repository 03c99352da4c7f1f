"""JX220: compute the branches in a `cond`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx220_both_branches.rule import BothBranches
from jaxsight.rules.patterns.syntax import SyntaxPatterns


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `cond(pred, lambda: a, lambda: b)` for `where(pred, a, b)` that contains the work."""
    data, patterns = context.finding.data, SyntaxPatterns(context)
    if not isinstance(data, BothBranches):
        return
    for call in context.find(ast.Call):
        found = patterns.at(call, "where(p, a, b) | select(p, a, b)")
        if found is None:
            continue
        cases = [" ".join(patterns.filled(case, found).split()) for case in ("{a}", "{b}")]
        if all(map(context.is_pure, call.args)) and all(
            expression and expression in case
            for expression, case in zip(data.expressions, cases, strict=True)
        ):
            text = patterns.filled("jax.lax.cond({p}, lambda: {a}, lambda: {b})", found)
            yield Candidate(
                "Compute one of the branches with `cond`",
                (*context.jax_import(), context.replace(call, text)),
            )
        return


# One branch runs in place of two; the figures count both.
REMEDY = Remedy("`jax.lax.cond` in place of the selection", candidates, trades=figures.ALL)
