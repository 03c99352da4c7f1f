"""What becomes of the intervals of integers that are moved, sliced, joined or indexed.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaxsight.rules.program.integers.applied import Applied, computes, transfers
from jaxsight.rules.program.integers.intervals import Axis, Interval, Terms
from jaxsight.rules.program.steps import elements, numbers

computes(lambda operand: operand, "copy", "copy_p", "stop_gradient")
computes(lambda operand, *others: operand.bounds_alone(), "sort", "tile")


@transfers("broadcast_in_dim", "squeeze", "transpose")
def _axes(applied: Applied, operand: Interval) -> Interval:
    """Move the axes of affine values; keep the elements too where they are in the same order."""
    if operand.one is not None:
        return Interval.listed([operand.one])
    step = applied.step
    is_in_order = step.primitive != "transpose"
    is_whole = elements(applied.before) == elements(applied.after)
    integers = operand.integers if is_in_order and is_whole else None
    moved = replace(operand.bounds_alone(), ends=operand.corners, integers=integers)
    if operand.affine is None or step.primitive == "squeeze":
        return moved
    if is_in_order:
        places = dict(enumerate(numbers(step, "broadcast_dimensions")))
    else:
        order = numbers(step, "permutation")
        places = {axis: order.index(axis) for axis in order}
    base, terms = operand.affine
    if any(isinstance(axis, int) and axis not in places for axis in terms):
        return moved
    return replace(moved, affine=(base, _renamed(terms, places)))


def _renamed(terms: Terms, places: Mapping[int, int]) -> Terms:
    """Return terms with other axes of the array; loops are the same."""
    return {places[axis] if isinstance(axis, int) else axis: term for axis, term in terms.items()}


@transfers("reshape")
def _reshape(applied: Applied, operand: Interval) -> Interval:
    return operand if operand.one is not None else replace(operand, affine=None)


@transfers("slice")
def _slice(applied: Applied, operand: Interval) -> Interval | None:
    step, after = applied.step, applied.after.shape
    starts, strides = numbers(step, "start_indices"), numbers(step, "strides") or (1,) * len(after)
    if len(starts) != len(after) or len(strides) != len(after):
        return operand.some()
    if operand.affine is not None:
        base, terms = operand.affine
        cut: dict[Axis, tuple[int, int]] = {}
        for axis, (by, count) in terms.items():
            if isinstance(axis, int):
                base += by * starts[axis]
                by, count = by * strides[axis], after[axis]
            cut[axis] = by, count
        return Interval.of_affine(base, cut)
    return operand.some()


@transfers("concatenate", "stack")
def _joined(applied: Applied, *operands: Interval) -> Interval | None:
    numbers = applied.step.operands
    shapes = [applied.flow.value(number).shape for number in numbers]
    parts = [part for part, shape in zip(operands, shapes, strict=True) if 0 not in shape]
    if not parts:
        return None
    return Interval(
        min(part.least for part in parts),
        max(part.most for part in parts),
        min(part.low for part in parts),
        max(part.high for part in parts),
    )
