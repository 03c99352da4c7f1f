"""What becomes of the intervals of integers that are moved, sliced, joined or indexed.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from jaxsight.rules.program.integers.indices import index_of
from jaxsight.rules.program.integers.intervals import Axis, Interval, picked
from jaxsight.rules.program.integers.known_intervals import (
    KnownIntervals,
    TransferFunction,
    pair_of,
    row_of,
)
from jaxsight.rules.program.steps import elements, numbers
from jaxsight.wire.program import Step, Value


def _moved(intervals: KnownIntervals, step: Step) -> Interval | None:
    return intervals.of(step.operands[0])


def _axes(change: Callable[[Step, Value, Axis], Axis | None]) -> TransferFunction:
    """Move the axes of affine values: `None` where an axis goes nowhere."""

    def rule(intervals: KnownIntervals, step: Step) -> Interval | None:
        operand = intervals.of(step.operands[0])
        if operand is None:
            return None
        moved = replace(operand.bounds_alone(), ends=operand.corners)
        if operand.one is not None:
            return Interval.listed([operand.one])
        if operand.affine is None:
            return moved
        value = intervals.value(step.operands[0])
        base, terms = operand.affine
        renamed: dict[Axis, tuple[int, int]] = {}
        for axis, term in terms.items():
            after = change(step, value, axis) if isinstance(axis, int) else axis
            if after is None:
                return moved
            renamed[after] = term
        return replace(moved, affine=(base, renamed))

    return rule


def _listed_again(rule: TransferFunction) -> TransferFunction:
    """Keep the elements too, of a primitive that leaves them in their order."""

    def kept(intervals: KnownIntervals, step: Step) -> Interval | None:
        interval, moved = intervals.of(step.operands[0]), rule(intervals, step)
        if interval is None or moved is None or moved.one is not None:
            return moved
        same = elements(intervals.value(step.operands[0])) == elements(
            intervals.value(step.results[0])
        )
        return replace(moved, integers=interval.integers) if same else moved

    return kept


def _broadcast_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    places = numbers(step, "broadcast_dimensions")
    return places[axis] if isinstance(axis, int) and axis < len(places) else None


def _squeezed_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    assert isinstance(axis, int)
    return axis - sum(gone < axis for gone in numbers(step, "dimensions"))


def _transposed_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    places = numbers(step, "permutation")
    return places.index(axis) if axis in places else None


def _reshape(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None:
        return None
    before, after = intervals.value(step.operands[0]).shape, intervals.value(step.results[0]).shape
    moved = replace(operand, affine=None)
    if operand.one is not None:
        return operand
    if operand.affine is None:
        return moved
    base, terms = operand.affine
    moved_terms: dict[Axis, tuple[int, int]] = {
        axis: term for axis, term in terms.items() if isinstance(axis, str)
    }
    wide = [axis for axis, size in enumerate(before) if size > 1]
    places = [axis for axis, size in enumerate(after) if size > 1]
    if [before[axis] for axis in wide] == [after[axis] for axis in places]:
        renamed = dict(zip(wide, places, strict=True))
        moved_terms |= {renamed[axis]: term for axis, term in terms.items() if axis in renamed}
        return replace(moved, affine=(base, moved_terms))
    if len(wide) == 1 and wide[0] in terms:
        by, row = terms[wide[0]][0], 1
        for axis in reversed(places):
            moved_terms[axis] = (by * row, after[axis])
            row *= after[axis]
        return replace(moved, affine=(base, moved_terms))
    return moved


def _slice(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None:
        return None
    starts, after = numbers(step, "start_indices"), intervals.value(step.results[0]).shape
    strides = numbers(step, "strides") or (1,) * len(after)
    if len(starts) != len(after) or len(strides) != len(after):
        return operand.some()
    if (part := _part(intervals, step.operands[0], starts, after)) is not None:
        return part
    if operand.affine is not None:
        base, terms = operand.affine
        cut: dict[Axis, tuple[int, int]] = {}
        for axis, (by, count) in terms.items():
            if isinstance(axis, int):
                base += by * starts[axis]
                cut[axis] = by * strides[axis], after[axis]
            else:
                cut[axis] = by, count
        return Interval.of_affine(base, cut)
    before = intervals.value(step.operands[0]).shape
    if operand.integers is not None and len(operand.integers) == math.prod(before):
        places = [
            [start + stride * index for index in range(size)]
            for start, stride, size in zip(starts, strides, after, strict=True)
        ]
        return Interval.listed(picked(operand.integers, before, places))
    return operand.some()


def _part(
    intervals: KnownIntervals, number: int, starts: Sequence[int], sizes: Sequence[int]
) -> Interval | None:
    """Return the one array of those that were stacked or concatenated that a slice is."""
    maker = intervals.maker(number)
    if maker is None or maker.primitive not in ("stack", "concatenate"):
        return None
    (axis,) = numbers(maker, "axis" if maker.primitive == "stack" else "dimension") or (-1,)
    if not 0 <= axis < len(starts):
        return None
    at = 0
    for operand in maker.operands:
        shape = intervals.value(operand).shape
        length = 1 if maker.primitive == "stack" else shape[axis]
        is_from_start = all(
            start == 0 for dimension, start in enumerate(starts) if dimension != axis
        )
        full_shape = shape if maker.primitive != "stack" else (*shape[:axis], 1, *shape[axis:])
        if starts[axis] == at and is_from_start and tuple(sizes) == full_shape:
            part = intervals.of(operand)
            if part is None or part.affine is None or maker.primitive != "stack":
                return part
            base, terms = part.affine
            moved = {
                dimension + 1
                if isinstance(dimension, int) and dimension >= axis
                else dimension: term
                for dimension, term in terms.items()
            }
            return replace(part, affine=(base, moved))
        at += length
    return None


def _rev(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None:
        return None
    shape, turned = intervals.value(step.results[0]).shape, numbers(step, "dimensions")
    integers = operand.integers[::-1] if operand.integers is not None and len(shape) == 1 else None
    if operand.affine is None:
        return replace(operand, integers=integers)
    base, terms = operand.affine
    reversed_terms: dict[Axis, tuple[int, int]] = {}
    for axis, (by, count) in terms.items():
        if axis in turned:
            base += by * (count - 1)
            by = -by
        reversed_terms[axis] = by, count
    return replace(operand, affine=(base, reversed_terms), integers=integers)


def _concatenate(intervals: KnownIntervals, step: Step) -> Interval | None:
    return _union(intervals, step.operands)


def _union(intervals: KnownIntervals, operands: Sequence[int]) -> Interval | None:
    """Return the interval of all elements of some values."""
    one_axis = all(len(intervals.value(operand).shape) == 1 for operand in operands)
    rows = [row_of(intervals, operand) for operand in operands] if one_axis else [None]
    if all(row is not None for row in rows):
        return Interval.listed(integer for row in rows for integer in row or ())
    return _extremes(intervals, operands)


def _extremes(intervals: KnownIntervals, operands: Sequence[int]) -> Interval | None:
    """Return what is known of elements of several arrays, wherever they are."""
    parts = [
        intervals.of(operand) for operand in operands if 0 not in intervals.value(operand).shape
    ]
    intervals_of_parts = [part for part in parts if part is not None]
    if not intervals_of_parts or len(intervals_of_parts) != len(parts):
        return None
    return Interval(
        min(part.least for part in intervals_of_parts),
        max(part.most for part in intervals_of_parts),
        min(part.low for part in intervals_of_parts),
        max(part.high for part in intervals_of_parts),
    )


def _pad(intervals: KnownIntervals, step: Step) -> Interval | None:
    parts = pair_of(intervals, step)
    if parts is None:
        return None
    a, b = parts
    return Interval(
        min(a.least, b.least), max(a.most, b.most), max(a.most, b.most), min(a.least, b.least)
    )


def _dynamic_slice(intervals: KnownIntervals, step: Step) -> Interval | None:
    interval, shape = intervals.of(step.operands[0]), intervals.value(step.operands[0]).shape
    if interval is None:
        return None
    if len(shape) == 1 and numbers(step, "slice_sizes") == (1,):
        start = index_of(intervals, step.operands[1], shape[0])
        if start is not None and start.affine is not None and start.least >= 0:
            inside = start.most < shape[0]
            if inside and interval.affine is not None and set(interval.affine[1]) <= {0}:
                base, terms = interval.affine
                by = terms[0][0] if 0 in terms else 0
                first, counters = start.affine
                moved = {
                    axis: (by * step_size, count) for axis, (step_size, count) in counters.items()
                }
                return Interval.of_affine(base + by * first, moved)
            covers = start.least == 0 and start.most == shape[0] - 1
            if inside and covers and [abs(by) for by, _ in start.affine[1].values()] == [1]:
                return interval.bounds_alone()
    return interval.some()


def _gather(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    fills = "FILL" in dict(step.parameters).get("mode", "FILL")
    return None if operand is None or fills else operand.some()


def _reordered(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    return None if operand is None else operand.bounds_alone()


MOVES: Mapping[str, TransferFunction] = {
    "broadcast_in_dim": _listed_again(_axes(_broadcast_axis)),
    "concatenate": _concatenate,
    "copy": _moved,
    "copy_p": _moved,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "pad": _pad,
    "reshape": _reshape,
    "rev": _rev,
    "slice": _slice,
    "sort": _reordered,
    "stack": lambda intervals, step: _extremes(intervals, step.operands),
    "squeeze": _listed_again(_axes(_squeezed_axis)),
    "stop_gradient": _moved,
    "tile": _reordered,
    "transpose": _axes(_transposed_axis),
}
