"""JX420: drop the axis of size 1 of the column."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx420_outer_broadcast.names import operands_of
from jaxsight.rules.jx420_outer_broadcast.rule import OuterBroadcast
from jaxsight.rules.wording import quoted


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with `.squeeze(-1)` on each operand that has the column's shape.

    The values change on purpose.
    """
    shapes = context.finding.data
    node = next(iter(context.nodes), None)
    if not isinstance(shapes, OuterBroadcast) or node is None:
        return
    columns = [
        operand
        for operand in operands_of(node)
        if (aval := context.aval_of(operand)) is not None and aval.shape == shapes.column
    ]
    names = " and ".join(quoted(context.text(column), most=30) for column in columns)
    edits = [
        context.replace(column, f"{context.operand(column)}.squeeze(-1)") for column in columns
    ]
    if edits:
        yield Candidate(f"Drop the last axis of {names}", tuple(edits), same=False)


# Numbers that are right; what is computed is less.
REMEDY = Remedy(
    "the column without its axis of size 1 (unsafe)",
    candidates,
    trades=figures.ALL,
)
