"""What arithmetic of integers makes of their intervals.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace

from jaxsight.rules.program.integers.intervals import (
    Interval,
    greater,
    less,
    monotone,
    negative,
    paired,
    power,
    products,
    summed,
    truncated,
    with_ends,
)
from jaxsight.rules.program.integers.known_intervals import (
    KnownIntervals,
    TransferFunction,
    pair_of,
)
from jaxsight.rules.program.steps import parameter
from jaxsight.wire.program import Step


def _add(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    return None if pair is None else summed(*pair, lambda a, b: a + b)


def _sub(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None:
        return None
    if intervals.same(*step.operands):
        return Interval.listed([0])
    return summed(pair[0], negative(pair[1]), lambda a, b: a + b)


def _neg(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    return None if operand is None else negative(operand)


def _mul(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None:
        return None
    if intervals.same(*step.operands):
        return power(pair[0], 2)
    a, b = pair
    for affine, factor in ((a, b), (b, a)):
        if factor.one is not None and affine.affine is not None:
            base, terms = affine.affine
            scaled = {axis: (by * factor.one, count) for axis, (by, count) in terms.items()}
            exact = Interval.of_affine(base * factor.one, scaled)
            return replace(exact, integers=paired(a, b, lambda x, y: x * y))
    if (integers := paired(a, b, lambda x, y: x * y)) is not None:
        return Interval.listed(integers)
    corners = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
    least, most = min(corners), max(corners)
    low, high = products(a, b) or (most, least)
    return with_ends(Interval(least, most, low, high), a, b, operator.mul)


def _integer_pow(intervals: KnownIntervals, step: Step) -> Interval | None:
    interval, exponent = intervals.of(step.operands[0]), parameter(step, "y")
    if interval is None or not isinstance(exponent, int) or not 0 <= exponent <= 64:
        return None
    return power(interval, exponent)


def _shift_left(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None or not 0 <= pair[1].least <= pair[1].most <= 64 or pair[0].least < 0:
        return None
    a, b = pair
    if (integers := paired(a, b, lambda x, y: x << y)) is not None:
        return Interval.listed(integers)
    return Interval.between(a.least << b.least, a.most << b.most)


def _shift_right(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None or pair[1].least < 0 or pair[1].most > 64 or pair[0].least < 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return monotone(a, lambda number: number >> by)
    if (integers := paired(a, b, lambda x, y: x >> y)) is not None:
        return Interval.listed(integers)
    return Interval.between(a.least >> b.most, a.most >> b.least)


def _and(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None:
        return None
    a, b = pair
    if (integers := paired(a, b, lambda x, y: x & y)) is not None:
        return Interval.listed(integers)
    if 0 in (a.one, b.one):
        return Interval.listed([0])
    if a.least >= 0 or b.least >= 0:
        return Interval.between(0, min(interval.most for interval in pair if interval.least >= 0))
    return None


def _or(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None:
        return None
    if (integers := paired(*pair, lambda x, y: x | y)) is not None:
        return Interval.listed(integers)
    if intervals.value(step.results[0]).dtype == "bool" and 1 in (pair[0].one, pair[1].one):
        return Interval.listed([1])
    return None


def _not(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None or intervals.value(step.results[0]).dtype != "bool":
        return None
    return monotone(negative(operand), lambda number: number + 1)


def _max(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    return None if pair is None else greater(*pair)


def _min(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    return None if pair is None else less(*pair)


def _clamp(intervals: KnownIntervals, step: Step) -> Interval | None:
    low, number, high = (intervals.of(operand) for operand in step.operands)
    if low is None or number is None or high is None:
        return None
    return less(greater(number, low), high)


def _div(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return monotone(a, lambda number: truncated(number, by))
    bound = max(abs(a.least), abs(a.most))
    return Interval.between(0 if a.least >= 0 else -bound, bound)


def _rem(intervals: KnownIntervals, step: Step) -> Interval | None:
    pair = pair_of(intervals, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if a.least >= 0 and a.most < b.least:
        return a
    if (integers := paired(a, b, lambda x, y: x - y * truncated(x, y))) is not None:
        return Interval.listed(integers)
    end = b.most - 1
    if a.least < 0:
        return Interval.between(-end, end)
    if b.one is not None and a.affine is not None and a.most - a.least >= b.one - 1:
        steps = [abs(by) for by, _ in a.affine[1].values()]
        if steps == [1]:
            return Interval(0, end, 0, end)
    return Interval.between(0, min(end, a.most))


def _sign(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    return (
        None if operand is None else monotone(operand, lambda number: (number > 0) - (number < 0))
    )


def _abs(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None:
        return None
    if operand.least >= 0:
        return operand
    if operand.integers is not None:
        return Interval.listed(map(abs, operand.integers))
    most = max(-operand.least, operand.most)
    return Interval(0, most, most, max(operand.high, -operand.low, 0))


def _convert(intervals: KnownIntervals, step: Step) -> Interval | None:
    operand = intervals.of(step.operands[0])
    if operand is None:
        return None
    if (
        intervals.value(step.results[0]).dtype == "bool"
        and not 0 <= operand.least <= operand.most <= 1
    ):
        return None
    return operand


ARITHMETIC: Mapping[str, TransferFunction] = {
    "abs": _abs,
    "add": _add,
    "add_any": _add,
    "and": _and,
    "clamp": _clamp,
    "convert_element_type": _convert,
    "div": _div,
    "integer_pow": _integer_pow,
    "max": _max,
    "min": _min,
    "mul": _mul,
    "neg": _neg,
    "not": _not,
    "or": _or,
    "rem": _rem,
    "shift_left": _shift_left,
    "shift_right_arithmetic": _shift_right,
    "shift_right_logical": _shift_right,
    "sign": _sign,
    "square": lambda intervals, step: (
        None if (operand := intervals.of(step.operands[0])) is None else power(operand, 2)
    ),
    "sub": _sub,
}
