"""What sums, products, extremes and matrix products make of the intervals of integers.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from jaxsight.rules.program.integers.intervals import Axis, Interval, varies
from jaxsight.rules.program.integers.known_intervals import (
    KnownIntervals,
    TransferFunction,
    is_full,
    pair_of,
    row_of,
)
from jaxsight.rules.program.steps import elements, numbers, parameter
from jaxsight.wire.program import Step


def _argument(intervals: KnownIntervals, step: Step) -> Interval | None:
    axes = numbers(step, "axes")
    shape = intervals.value(step.operands[0]).shape
    return Interval.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None


def _reduce_max(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None or 0 in intervals.value(step.operands[0]).shape:
        return None
    if is_full(intervals, step) and not varies(operand):
        greatest = operand.high if operand.high == operand.most else None
        if greatest is not None:
            return Interval.listed([greatest])
    return Interval(operand.least, operand.most, operand.most, operand.high)


def _reduce_min(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None or 0 in intervals.value(step.operands[0]).shape:
        return None
    if is_full(intervals, step) and not varies(operand) and operand.low == operand.least:
        return Interval.listed([operand.least])
    return Interval(operand.least, operand.most, operand.low, operand.least)


def _reduce_sum(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    value, sums = intervals.value(step.operands[0]), intervals.value(step.results[0])
    if operand is None or not elements(sums):
        return None
    count = elements(value) // elements(sums)
    if not count:
        return None
    if (
        operand.integers is not None
        and len(operand.integers) == elements(value)
        and count == elements(value)
    ):
        return Interval.listed([sum(operand.integers)])
    if operand.affine is not None:
        base, terms = operand.affine
        axes = numbers(step, "axes")
        total, other_terms = base * count, dict[Axis, tuple[int, int]]()
        for axis, (by, size) in terms.items():
            if axis in axes:
                total += by * (size * (size - 1) // 2) * (count // size)
            else:
                after = axis - sum(gone < axis for gone in axes) if isinstance(axis, int) else axis
                other_terms[after] = by * count, size
        return Interval.of_affine(total, other_terms)
    is_one = elements(sums) == 1
    return Interval(
        operand.least * count,
        operand.most * count,
        operand.low + operand.most * (count - 1) if is_one else operand.most * count,
        operand.high + operand.least * (count - 1) if is_one else operand.least * count,
    )


def _reduce_prod(intervals: KnownIntervals, step: Step) -> Interval | None:
    row = row_of(intervals, step.operands[0])
    if row is None or not is_full(intervals, step):
        return None
    return Interval.listed([math.prod(row)])


def _cumulative(function: Callable[[int, int], int]) -> TransferFunction:
    def rule(intervals: KnownIntervals, step: Step) -> Interval | None:
        interval, shape = intervals.of(step.operands[0]), intervals.value(step.operands[0]).shape
        if interval is None or not shape:
            return None
        row = row_of(intervals, step.operands[0])
        if row is not None:
            ordered = list(reversed(row)) if parameter(step, "reverse") else list(row)
            total, results = None, []
            for integer in ordered:
                total = integer if total is None else function(total, integer)
                results.append(total)
            return Interval.listed(results)
        if step.primitive != "cumsum":
            return None
        axis = numbers(step, "axis")
        length = shape[axis[0]] if axis else 0
        ends = (interval.least * length, interval.most * length, interval.least, interval.most)
        last = interval.least * length
        if interval.affine is not None and set(interval.affine[1]) <= {0} and len(shape) == 1:
            base, terms = interval.affine
            by = terms[0][0] if 0 in terms else 0
            last = base * length + by * (length * (length - 1) // 2)
            return Interval(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
        return Interval(min(ends), max(ends), max(ends), max(min(ends), last))

    return rule


def _dot(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None or not elements(intervals.value(step.results[0])):
        return None
    contracted = parameter(step, "dimension_numbers")
    match contracted:
        case (((*axes,), _), _):
            shape = intervals.value(step.operands[0]).shape
            count = math.prod(shape[axis] for axis in axes if isinstance(axis, int))
        case _:
            return None
    row, column = (_affine_row(intervals, number) for number in step.operands)
    if row is not None and column is not None:
        (a, b), (c, d) = row, column
        total = count * (count - 1) // 2
        squares = total * (2 * count - 1) // 3
        return Interval.listed([a * c * count + (a * d + b * c) * total + b * d * squares])
    corners = [x * y for x in (pair[0].least, pair[0].most) for y in (pair[1].least, pair[1].most)]
    return Interval.between(count * min(corners), count * max(corners))


def _affine_row(intervals: KnownIntervals, number: int) -> tuple[int, int] | None:
    """Return the first element of an affine vector, and the difference of its elements."""
    interval = intervals.of(number)
    if interval is None or interval.affine is None or len(intervals.value(number).shape) != 1:
        return None
    base, terms = interval.affine
    return (base, terms[0][0] if 0 in terms else 0) if set(terms) <= {0} else None


REDUCTIONS: Mapping[str, TransferFunction] = {
    "argmax": _argument,
    "argmin": _argument,
    "cummax": _cumulative(max),
    "cummin": _cumulative(min),
    "cumprod": _cumulative(lambda total, integer: total * integer),
    "cumsum": _cumulative(lambda total, integer: total + integer),
    "dot_general": _dot,
    "reduce_max": _reduce_max,
    "reduce_min": _reduce_min,
    "reduce_prod": _reduce_prod,
    "reduce_sum": _reduce_sum,
}
