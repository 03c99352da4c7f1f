"""What sums, products, extremes and matrix products make of the ranges of integers.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from jaxsight.rules.program.integers.intervals import Axis, Range, varies
from jaxsight.rules.program.integers.known_ranges import (
    KnownRanges,
    TransferFunction,
    is_full,
    pair_of,
    row_of,
)
from jaxsight.rules.program.steps import elements, numbers, parameter
from jaxsight.wire.program import Step


def _argument(ranges: KnownRanges, step: Step) -> Range | None:
    axes = numbers(step, "axes")
    shape = ranges.value(step.operands[0]).shape
    return Range.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None


def _reduce_max(ranges: KnownRanges, step: Step) -> Range | None:
    operand = ranges.of(step.operands[0])
    if operand is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if is_full(ranges, step) and not varies(operand):
        greatest = operand.high if operand.high == operand.most else None
        if greatest is not None:
            return Range.listed([greatest])
    return Range(operand.least, operand.most, operand.most, operand.high)


def _reduce_min(ranges: KnownRanges, step: Step) -> Range | None:
    operand = ranges.of(step.operands[0])
    if operand is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if is_full(ranges, step) and not varies(operand) and operand.low == operand.least:
        return Range.listed([operand.least])
    return Range(operand.least, operand.most, operand.low, operand.least)


def _reduce_sum(ranges: KnownRanges, step: Step) -> Range | None:
    operand = ranges.of(step.operands[0])
    value, sums = ranges.value(step.operands[0]), ranges.value(step.results[0])
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
        return Range.listed([sum(operand.integers)])
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
        return Range.of_affine(total, other_terms)
    is_one = elements(sums) == 1
    return Range(
        operand.least * count,
        operand.most * count,
        operand.low + operand.most * (count - 1) if is_one else operand.most * count,
        operand.high + operand.least * (count - 1) if is_one else operand.least * count,
    )


def _reduce_prod(ranges: KnownRanges, step: Step) -> Range | None:
    row = row_of(ranges, step.operands[0])
    if row is None or not is_full(ranges, step):
        return None
    return Range.listed([math.prod(row)])


def _cumulative(function: Callable[[int, int], int]) -> TransferFunction:
    def rule(ranges: KnownRanges, step: Step) -> Range | None:
        range_, shape = ranges.of(step.operands[0]), ranges.value(step.operands[0]).shape
        if range_ is None or not shape:
            return None
        row = row_of(ranges, step.operands[0])
        if row is not None:
            ordered = list(reversed(row)) if parameter(step, "reverse") else list(row)
            total, results = None, []
            for integer in ordered:
                total = integer if total is None else function(total, integer)
                results.append(total)
            return Range.listed(results)
        if step.primitive != "cumsum":
            return None
        axis = numbers(step, "axis")
        length = shape[axis[0]] if axis else 0
        ends = (range_.least * length, range_.most * length, range_.least, range_.most)
        last = range_.least * length
        if range_.affine is not None and set(range_.affine[1]) <= {0} and len(shape) == 1:
            base, terms = range_.affine
            by = terms[0][0] if 0 in terms else 0
            last = base * length + by * (length * (length - 1) // 2)
            return Range(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
        return Range(min(ends), max(ends), max(ends), max(min(ends), last))

    return rule


def _dot(ranges: KnownRanges, step: Step) -> Range | None:
    pair = pair_of(ranges, step)
    if pair is None or not elements(ranges.value(step.results[0])):
        return None
    contracted = parameter(step, "dimension_numbers")
    match contracted:
        case (((*axes,), _), _):
            shape = ranges.value(step.operands[0]).shape
            count = math.prod(shape[axis] for axis in axes if isinstance(axis, int))
        case _:
            return None
    row, column = (_affine_row(ranges, number) for number in step.operands)
    if row is not None and column is not None:
        (a, b), (c, d) = row, column
        total = count * (count - 1) // 2
        squares = total * (2 * count - 1) // 3
        return Range.listed([a * c * count + (a * d + b * c) * total + b * d * squares])
    corners = [x * y for x in (pair[0].least, pair[0].most) for y in (pair[1].least, pair[1].most)]
    return Range.between(count * min(corners), count * max(corners))


def _affine_row(ranges: KnownRanges, number: int) -> tuple[int, int] | None:
    """Return the first element of an affine vector, and the difference of its elements."""
    range_ = ranges.of(number)
    if range_ is None or range_.affine is None or len(ranges.value(number).shape) != 1:
        return None
    base, terms = range_.affine
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
