"""JX330: add an axis, or transpose, where that makes shapes fit in one way only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx330_incompatible_shapes.rule import NewOperand


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with the operand rewritten."""
    data = context.finding.data
    if not isinstance(data, NewOperand):
        return
    for node in context.nodes:
        if isinstance(node, ast.expr) and ast.unparse(node) == data.old:
            edit = context.replace(node, data.new)
            yield Candidate(f"Write `{data.new}`", (edit,), safe=False, same=False)
            return


REMEDY = Remedy("an added axis, or a transpose (unsafe)", candidates)
