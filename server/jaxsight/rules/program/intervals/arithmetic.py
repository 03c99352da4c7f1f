"""What arithmetic, comparisons, selections and reductions make of intervals.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from jaxsight.rules.program.intervals.floats import quotient
from jaxsight.rules.program.intervals.interval import (
    Applied,
    Interval,
    computes,
    corner_products,
    greater,
    joined,
    less,
    monotone,
    negative,
    power,
    products,
    summed,
    transfers,
    truncated,
    varies,
)
from jaxsight.wire.primitives import COMPARISONS

_WIDEST = 64
"""Bits of JAX's widest integers: shifts and powers that may be greater are of unknown values."""

computes(summed, "add", "add_any")
computes(negative, "neg")
computes(lambda operand: power(operand, 2), "square")
computes(greater, "max")
computes(less, "min")
computes(lambda low, number, high: less(greater(number, low), high), "clamp")


@transfers("sub")
def _sub(applied: Applied, a: Interval, b: Interval) -> Interval:
    is_zero = _is_of_one(applied) and not applied.after.is_inexact
    return Interval.listed([0]) if is_zero else summed(a, negative(b))


def _is_of_one(applied: Applied) -> bool:
    """Whether both operands are the same value."""
    return applied.flow.alike(*applied.step.operands)


@transfers("mul")
def _mul(applied: Applied, a: Interval, b: Interval) -> Interval:
    if _is_of_one(applied):
        return power(a, 2)
    for affine, factor in ((a, b), (b, a)):
        if factor.one is not None and affine.affine is not None:
            base, terms = affine.affine
            scaled = {axis: (by * factor.one, count) for axis, (by, count) in terms.items()}
            return Interval.of_affine(base * factor.one, scaled)
    corners = corner_products(a, b)
    least, most = min(corners), max(corners)
    low, high = products(a, b) or (most, least)
    if _are_rising(a, b):  # the first elements meet, and so do the last ones
        return Interval(least, most, least, most)
    return Interval(least, most, low, high)


def _are_rising(*intervals: Interval) -> bool:
    """Whether values are affine, not negative, and fall along no axis and in no loop."""
    return all(
        each.affine is not None
        and each.least >= 0
        and all(by >= 0 for by, _ in each.affine[1].values())
        for each in intervals
    )


@transfers("integer_pow")
def _integer_pow(applied: Applied, operand: Interval) -> Interval | None:
    exponent = applied.step.number("y", 1)
    if 0 <= exponent <= _WIDEST:
        return power(operand, exponent)
    return Interval.of_floats(0, math.inf) if exponent % 2 == 0 or operand.least >= 0 else None


@transfers("shift_right_arithmetic", "shift_right_logical")
def _shift_right(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    if not 0 <= b.least <= b.most <= _WIDEST or a.least < 0:
        return None
    if (by := b.one) is not None:
        return monotone(a, lambda number: number >> by)
    return Interval.between(a.least >> b.most, a.most >> b.least)


@transfers("and")
def _and(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    if 0 in (a.one, b.one):
        return Interval.listed([0])
    not_negative = [interval.most for interval in (a, b) if interval.least >= 0]
    return Interval.between(0, min(not_negative)) if not_negative else None


@transfers("div")
def _div(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    if applied.after.is_inexact:
        return quotient(a, b)
    if b.least <= 0:
        return None
    if (by := b.one) is not None:
        return monotone(a, lambda number: truncated(number, by))
    bound = max(abs(a.least), abs(a.most))
    return Interval.between(0 if a.least >= 0 else -bound, bound)


@transfers("rem")
def _rem(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    if b.least <= 0 or applied.after.is_inexact:
        return None
    if a.least >= 0 and a.most < b.least:
        return a
    end = b.most - 1
    if a.least < 0:
        return Interval.between(-end, end)
    steps = [abs(by) for by, _ in a.affine[1].values()] if a.affine is not None else []
    if b.one is not None and steps == [1] and a.most - a.least >= end:
        return Interval(0, end, 0, end)
    return Interval.between(0, min(end, a.most))


@transfers("convert_element_type")
def _convert(applied: Applied, operand: Interval) -> Interval | None:
    if applied.after.dtype == "bool":
        return operand if 0 <= operand.least <= operand.most <= 1 else None
    if applied.before.is_inexact and not applied.after.is_inexact:
        return Interval.between(math.floor(operand.least), math.ceil(operand.most))
    return operand.bounds_alone() if applied.after.is_inexact else operand


@transfers(*COMPARISONS)
def _compare(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    """Compare the bounds; the operators have the primitives' names."""
    if applied.before.is_inexact:
        return None  # NaN may be among them
    primitive = applied.step.primitive
    compare: Callable[[int, int], bool] = getattr(operator, primitive)
    ends = {compare(x, y) for x in (a.least, a.most) for y in (b.least, b.most)}
    are_apart = a.most < b.least or b.most < a.least or None not in (a.one, b.one)
    if len(ends) == 1 and (are_apart or primitive not in ("eq", "ne")):
        return Interval.listed(map(int, ends))
    return None


@transfers("select_n")
def _select(applied: Applied, which: Interval, *cases: Interval) -> Interval | None:
    if which.one is not None and 0 <= which.one < len(cases):
        return cases[which.one]
    if len(cases) != 2:
        return joined(*cases)
    a, b = cases
    return Interval(
        min(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(min(a.high, b.least), min(b.high, a.least)),
    )


# Sums, products, extremes and products of matrices.


@transfers("reduce_max")
def _reduce_max(applied: Applied, operand: Interval) -> Interval | None:
    if 0 in applied.before.shape:
        return None
    is_reached = operand.high == operand.most and not varies(operand)
    if is_reached and applied.after.shape == ():  # over all axes
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
    if operand.affine is not None and sums == 1:
        base, terms = operand.affine
        if not any(isinstance(axis, str) for axis in terms):
            steps = (by * (size * (size - 1) // 2) * (count // size) for by, size in terms.values())
            return Interval.listed([base * count + sum(steps)])
    least, most = operand.least * count, operand.most * count
    return Interval.between(least, most)


@transfers("cumsum")
def _cumsum(applied: Applied, operand: Interval) -> Interval:
    shape, axis = applied.before.shape, applied.step.numbers("axis")
    length = shape[axis[0]] if axis else 0
    ends = (operand.least * length, operand.most * length, operand.least, operand.most)
    if operand.line is not None and len(shape) == 1:
        base, by = operand.line
        last = base * length + by * (length * (length - 1) // 2)
        return Interval(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
    return Interval.between(min(ends), max(ends))


@transfers("dot_general")
def _dot(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    match applied.step.parameter("dimension_numbers"):
        case (((*axes,), _), _) if applied.after.elements:
            shape = applied.before.shape
            count = math.prod(shape[axis] for axis in axes if isinstance(axis, int))
            corners = corner_products(a, b)
            return Interval.between(count * min(corners), count * max(corners))
    return None
