"""What sums, products, extremes and matrix products make of intervals.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math

from jaxsight.rules.program.intervals.applied import Applied, transfers
from jaxsight.rules.program.intervals.interval import (
    Axis,
    Interval,
    corner_products,
    negative,
    varies,
)


@transfers("reduce_max")
def _reduce_max(applied: Applied, operand: Interval) -> Interval | None:
    if 0 in applied.before.shape:
        return None
    if applied.is_full and not varies(operand) and operand.high == operand.most:
        return Interval.listed([operand.most])
    return Interval(operand.least, operand.most, operand.most, operand.high)


@transfers("reduce_min")
def _reduce_min(applied: Applied, operand: Interval) -> Interval | None:
    greatest = _reduce_max(applied, negative(operand))
    return negative(greatest) if greatest is not None else None


@transfers("reduce_sum")
def _reduce_sum(applied: Applied, operand: Interval) -> Interval | None:
    sums = applied.after.elements
    count = applied.before.elements // sums if sums else 0
    if not count:
        return None
    if sums == 1 and operand.integers is not None and applied.is_listed(operand):
        return Interval.listed([sum(operand.integers)])
    if operand.affine is not None:
        base, terms = operand.affine
        axes = applied.step.numbers("axes")
        total, other_terms = base * count, dict[Axis, tuple[int, int]]()
        for axis, (by, size) in terms.items():
            if axis in axes:
                total += by * (size * (size - 1) // 2) * (count // size)
            else:
                after = axis - sum(gone < axis for gone in axes) if isinstance(axis, int) else axis
                other_terms[after] = by * count, size
        return Interval.of_affine(total, other_terms)
    least, most = operand.least * count, operand.most * count
    if sums != 1:
        return Interval.between(least, most)
    others = count - 1
    low, high = operand.low + operand.most * others, operand.high + operand.least * others
    return Interval(least, most, low, high)


@transfers("cumsum")
def _cumsum(applied: Applied, operand: Interval) -> Interval:
    shape, axis = applied.before.shape, applied.step.numbers("axis")
    length = shape[axis[0]] if axis else 0
    ends = (operand.least * length, operand.most * length, operand.least, operand.most)
    if operand.line is not None and len(shape) == 1:
        base, by = operand.line
        last = base * length + by * (length * (length - 1) // 2)
        return Interval(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
    return Interval(min(ends), max(ends), max(ends), max(min(ends), ends[0]))


@transfers("dot_general")
def _dot(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    match applied.step.parameter("dimension_numbers"):
        case (((*axes,), _), _) if applied.after.elements:
            shape = applied.before.shape
            count = math.prod(shape[axis] for axis in axes if isinstance(axis, int))
            corners = corner_products(a, b)
            return Interval.between(count * min(corners), count * max(corners))
    return None
