"""Find equations whose operands are a column and a row that was a vector."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.wire.program import Step


@dataclass(frozen=True, slots=True)
class Join:
    """An equation whose operands are a column and a row that was a vector."""

    step: Step
    column: int
    vector: int
    column_first: bool


def join_of(flow: Flow, step: Step, shape: tuple[int, ...]) -> Join | None:
    """Return the column and the vector that an equation makes a matrix of.

    The vector becomes a row by broadcasting in the same expression: nobody wrote it.
    """
    operands = [
        (index, _before_broadcast(flow, step, number)) for index, number in enumerate(step.operands)
    ]
    columns = [
        (index, number)
        for index, number in operands
        if flow.value(number).shape[-2:] == (shape[-1], 1)
    ]
    rows = [
        (index, number)
        for index, number in operands
        if flow.of(step.operands[index]) != number
        and flow.value(number).shape[-1:] == shape[-1:]
        and flow.value(number).shape[:-1] in ((), shape[:-2])
    ]
    if not columns or not rows:
        return None
    return Join(step, columns[0][1], rows[0][1], columns[0][0] < rows[0][0])


def _before_broadcast(flow: Flow, step: Step, number: int) -> int:
    """Return the operand as it was before the expression itself broadcast it."""
    maker = flow.made_by(number)
    while (
        maker is not None
        and maker.primitive in ("broadcast_in_dim", "reshape", "expand_dims")
        and maker.span == step.span
        and len(maker.operands) == 1
    ):
        number = maker.operands[0]
        maker = flow.made_by(number)
    return flow.of(number)
