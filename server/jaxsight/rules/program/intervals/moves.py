"""What becomes of the intervals of numbers that are moved, sliced, joined or indexed.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from jaxsight.rules.program.flow import Flow, axis_after
from jaxsight.rules.program.intervals.interval import (
    Applied,
    Axis,
    Interval,
    Terms,
    computes,
    joined,
    limits,
    transfers,
)
from jaxsight.wire.primitives import PICKS, RESHAPES
from jaxsight.wire.program import Step

computes(lambda operand: operand, "copy", "copy_p", "stop_gradient")
computes(
    lambda operand, *others: operand.bounds_alone(),
    *("sort", "tile", "rev", "expand_dims", "reduce_precision", "cummax", "cummin"),
)
computes(lambda operand: operand.some(), "split")
computes(joined, "pad")


@transfers(*PICKS)
def _picked(applied: Applied, operand: Interval, *indices: Interval) -> Interval | None:
    fills = "FILL" in dict(applied.step.parameters).get("mode", "")
    return None if fills and not applied.after.is_inexact else operand.some()


@transfers("broadcast_in_dim", "squeeze", "transpose")
def _axes(applied: Applied, operand: Interval) -> Interval:
    """Move the axes of affine values."""
    if operand.one is not None:
        return Interval.listed([operand.one])
    step, moved = applied.step, operand.bounds_alone()
    if operand.affine is None:
        return moved
    rank = range(len(applied.before.shape))
    axes = {axis: axis_after(applied.flow, step, axis) for axis in rank}
    places = {axis: place for axis, place in axes.items() if place is not None}
    base, terms = operand.affine
    if any(isinstance(axis, int) and axis not in places for axis in terms):
        return moved
    return replace(moved, affine=(base, _renamed(terms, places)))


def _renamed(terms: Terms, places: Mapping[int, int]) -> Terms:
    """Return terms with other axes of the array; loops are the same."""
    return {places[axis] if isinstance(axis, int) else axis: term for axis, term in terms.items()}


@transfers("reshape")
def _reshape(applied: Applied, operand: Interval) -> Interval:
    if operand.one is not None or operand.affine is None:
        return operand
    before, after = applied.before.shape, applied.after.shape
    base, terms = operand.affine
    wide = [axis for axis, size in enumerate(before) if size > 1]
    places = [axis for axis, size in enumerate(after) if size > 1]
    if [before[axis] for axis in wide] == [after[axis] for axis in places]:
        renamed = dict(zip(wide, places, strict=True))
        return replace(operand, affine=(base, _renamed(terms, renamed)))
    return replace(operand, affine=None)


@transfers("slice")
def _slice(applied: Applied, operand: Interval) -> Interval | None:
    step, after = applied.step, applied.after.shape
    starts, strides = step.numbers("start_indices"), step.numbers("strides") or (1,) * len(after)
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


# The index that the user wrote, before JAX counts negative ones from the end.

Known = Callable[[int], Interval | None]
"""Returns the interval of a value; `None` of one that is no integer."""
_UNCHANGING = RESHAPES | {"broadcast_in_dim", "convert_element_type", "copy", "transpose"}
_NEAR = 8
"""Equations from an index to its `select_n`: reshapes and conversions by JAX and users."""


def index_before_wrapping(flow: Flow, of: Known, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0` (`_normalize_index` in jax/_src/numpy/indexing.py). An `i`
    that is at least `size`, or below `-size`, is out of bounds whichever of the two is selected.
    """

    def keeps(step: Step) -> bool:
        """Whether an equation is a conversion between integers that keeps all values."""
        interval, within = of(step.operands[0]), limits(flow.value(step.results[0]).dtype)
        if step.primitive != "convert_element_type" or interval is None or within is None:
            return False
        return within[0] <= interval.least and interval.most <= within[1]

    for _ in range(_NEAR):
        step = flow.producer(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = flow.producer(flow.before(step.operands[2], keeps))
            before = flow.before(step.operands[1], keeps)
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by, counted = of(added.operands[1]), flow.before(added.operands[0], keeps)
            is_wrapped = by is not None and by.one == size and counted == before
            return (before, True) if is_wrapped else (number, False)
        is_narrowed = step.primitive == "convert_element_type" and not keeps(step)
        if is_narrowed or step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False
