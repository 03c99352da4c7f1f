"""What primitives make of integers that something is known of.

Each follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from jaxsight.rules.program.intervals import (
    LISTED,
    Axis,
    Range,
    greater,
    less,
    limits,
    monotone,
    negative,
    paired,
    picked,
    power,
    products,
    summed,
    truncated,
    varies,
    with_ends,
)
from jaxsight.rules.program.view import elements, numbers, parameter
from jaxsight.wire.program import Step, Value


class Known(Protocol):
    """What is known of the values of a program."""

    def of(self, number: int) -> Range | None:
        """Return the range of a value; `None` of one that is no integer."""

    def value(self, number: int) -> Value:
        """Return the value of a number."""

    def maker(self, number: int) -> Step | None:
        """Return the equation that makes a value."""

    def same(self, one: int, other: int) -> bool:
        """Whether two numbers are the same value."""


def _add(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else summed(*pair, lambda a, b: a + b)


def _sub(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if ranges.same(*step.operands):
        return Range.listed([0])
    return summed(pair[0], negative(pair[1]), lambda a, b: a + b)


def _neg(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else negative(known)


def _mul(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if ranges.same(*step.operands):
        return power(pair[0], 2)
    a, b = pair
    for one, other in ((a, b), (b, a)):
        if other.one is not None and one.affine is not None:
            base, terms = one.affine
            scaled = {axis: (by * other.one, count) for axis, (by, count) in terms.items()}
            exact = Range.of_affine(base * other.one, scaled)
            return replace(exact, items=paired(a, b, lambda x, y: x * y))
    if (items := paired(a, b, lambda x, y: x * y)) is not None:
        return Range.listed(items)
    corners = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
    least, most = min(corners), max(corners)
    low, high = products(a, b) or (most, least)
    return with_ends(Range(least, most, low, high), a, b, operator.mul)


def _integer_pow(ranges: Known, step: Step) -> Range | None:
    known, exponent = ranges.of(step.operands[0]), parameter(step, "y")
    if known is None or not isinstance(exponent, int) or not 0 <= exponent <= 64:
        return None
    return power(known, exponent)


def _shift_left(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or not 0 <= pair[1].least <= pair[1].most <= 64 or pair[0].least < 0:
        return None
    a, b = pair
    if (items := paired(a, b, lambda x, y: x << y)) is not None:
        return Range.listed(items)
    return Range.between(a.least << b.least, a.most << b.most)


def _shift_right(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least < 0 or pair[1].most > 64 or pair[0].least < 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return monotone(a, lambda number: number >> by)
    if (items := paired(a, b, lambda x, y: x >> y)) is not None:
        return Range.listed(items)
    return Range.between(a.least >> b.most, a.most >> b.least)


def _and(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    a, b = pair
    if (items := paired(a, b, lambda x, y: x & y)) is not None:
        return Range.listed(items)
    if 0 in (a.one, b.one):
        return Range.listed([0])
    if a.least >= 0 or b.least >= 0:
        return Range.between(0, min(known.most for known in pair if known.least >= 0))
    return None


def _or(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if (items := paired(*pair, lambda x, y: x | y)) is not None:
        return Range.listed(items)
    if ranges.value(step.results[0]).dtype == "bool" and 1 in (pair[0].one, pair[1].one):
        return Range.listed([1])
    return None


def _not(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or ranges.value(step.results[0]).dtype != "bool":
        return None
    return monotone(negative(known), lambda number: number + 1)


def _max(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else greater(*pair)


def _min(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else less(*pair)


def _clamp(ranges: Known, step: Step) -> Range | None:
    low, number, high = (ranges.of(each) for each in step.operands)
    if low is None or number is None or high is None:
        return None
    return less(greater(number, low), high)


def _div(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return monotone(a, lambda number: truncated(number, by))
    bound = max(abs(a.least), abs(a.most))
    return Range.between(0 if a.least >= 0 else -bound, bound)


def _rem(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if a.least >= 0 and a.most < b.least:
        return a
    if (items := paired(a, b, lambda x, y: x - y * truncated(x, y))) is not None:
        return Range.listed(items)
    end = b.most - 1
    if a.least < 0:
        return Range.between(-end, end)
    if b.one is not None and a.affine is not None and a.most - a.least >= b.one - 1:
        steps = [abs(by) for by, _ in a.affine[1].values()]
        if steps == [1]:
            return Range(0, end, 0, end)
    return Range.between(0, min(end, a.most))


def _sign(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else monotone(known, lambda number: (number > 0) - (number < 0))


def _abs(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    if known.least >= 0:
        return known
    if known.items is not None:
        return Range.listed(map(abs, known.items))
    most = max(-known.least, known.most)
    return Range(0, most, most, max(known.high, -known.low, 0))


def _compared(
    certain: Callable[[Range, Range], bool | None], each: Callable[[int, int], bool]
) -> _Rule:
    def rule(ranges: Known, step: Step) -> Range | None:
        pair = _pair(ranges, step)
        if pair is None:
            return None
        holds = certain(*pair)
        if holds is not None:
            return Range.listed([int(holds)])
        items = paired(*pair, lambda a, b: int(each(a, b)))
        return Range.listed(items) if items is not None else None

    return rule


def _is_less(a: Range, b: Range) -> bool | None:
    if a.most < b.least:
        return True
    return False if a.least >= b.most else None


def _is_at_most(a: Range, b: Range) -> bool | None:
    after = _is_less(b, a)
    return None if after is None else not after


def _is_equal(a: Range, b: Range) -> bool | None:
    if a.one is not None and a.one == b.one:
        return True
    return False if a.most < b.least or b.most < a.least else None


def _is_different(a: Range, b: Range) -> bool | None:
    equal = _is_equal(a, b)
    return None if equal is None else not equal


def _select(ranges: Known, step: Step) -> Range | None:
    which = ranges.of(step.operands[0])
    cases = [ranges.of(each) for each in step.operands[1:]]
    if which is not None and which.one is not None and 0 <= which.one < len(cases):
        return cases[which.one]
    if len(cases) != 2:
        return None
    a, b = cases
    if a is None or b is None:
        return None
    if which is not None and which.items is not None:
        items = _chosen(which.items, a, b)
        if items is not None:
            return Range.listed(items)
    if _is_floor(ranges, step):
        return a
    return Range(
        min(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(min(a.high, b.least), min(b.high, a.least)),
    )


def _chosen(which: Sequence[int], a: Range, b: Range) -> tuple[int, ...] | None:
    rows = []
    for case in (a, b):
        row = (case.one,) * len(which) if case.one is not None else case.items
        if row is None or len(row) != len(which):
            return None
        rows.append(row)
    return tuple(rows[bool(at)][index] for index, at in enumerate(which))


def _is_floor(ranges: Known, step: Step) -> bool:
    """Return whether a selection is that of `//`, of operands that are never negative.

    `jnp.floor_divide` subtracts 1 from the quotient where the signs differ.
    """
    quotient, less = ranges.maker(step.operands[1]), ranges.maker(step.operands[2])
    if quotient is None or less is None or (quotient.primitive, less.primitive) != ("div", "sub"):
        return False
    if not ranges.same(less.operands[0], step.operands[1]):
        return False
    a, b = (ranges.of(each) for each in quotient.operands)
    return a is not None and b is not None and a.least >= 0 and b.least > 0


def _convert(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    if ranges.value(step.results[0]).dtype == "bool" and not 0 <= known.least <= known.most <= 1:
        return None
    return known


def _moved(ranges: Known, step: Step) -> Range | None:
    return ranges.of(step.operands[0])


def _axes(change: Callable[[Step, Value, Axis], Axis | None]) -> _Rule:
    """Move the axes of affine values: `None` where an axis goes nowhere."""

    def rule(ranges: Known, step: Step) -> Range | None:
        known = ranges.of(step.operands[0])
        if known is None:
            return None
        moved = replace(known.bounds_alone(), ends=known.corners)
        if known.one is not None:
            return Range.listed([known.one])
        if known.affine is None:
            return moved
        value = ranges.value(step.operands[0])
        base, terms = known.affine
        renamed: dict[Axis, tuple[int, int]] = {}
        for axis, term in terms.items():
            after = change(step, value, axis) if isinstance(axis, int) else axis
            if after is None:
                return moved
            renamed[after] = term
        return replace(moved, affine=(base, renamed))

    return rule


def _listed_again(rule: _Rule) -> _Rule:
    """Keep the elements too, of a primitive that leaves them in their order."""

    def kept(ranges: Known, step: Step) -> Range | None:
        known, moved = ranges.of(step.operands[0]), rule(ranges, step)
        if known is None or moved is None or moved.one is not None:
            return moved
        same = elements(ranges.value(step.operands[0])) == elements(ranges.value(step.results[0]))
        return replace(moved, items=known.items) if same else moved

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


def _reshape(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    before, after = ranges.value(step.operands[0]).shape, ranges.value(step.results[0]).shape
    moved = replace(known, affine=None)
    if known.one is not None:
        return known
    if known.affine is None:
        return moved
    base, terms = known.affine
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


def _slice(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    starts, after = numbers(step, "start_indices"), ranges.value(step.results[0]).shape
    strides = numbers(step, "strides") or (1,) * len(after)
    if len(starts) != len(after) or len(strides) != len(after):
        return known.some()
    if (part := _part(ranges, step.operands[0], starts, after)) is not None:
        return part
    if known.affine is not None:
        base, terms = known.affine
        cut: dict[Axis, tuple[int, int]] = {}
        for axis, (by, count) in terms.items():
            if isinstance(axis, int):
                base += by * starts[axis]
                cut[axis] = by * strides[axis], after[axis]
            else:
                cut[axis] = by, count
        return Range.of_affine(base, cut)
    before = ranges.value(step.operands[0]).shape
    if known.items is not None and len(known.items) == math.prod(before):
        places = [
            [start + stride * index for index in range(size)]
            for start, stride, size in zip(starts, strides, after, strict=True)
        ]
        return Range.listed(picked(known.items, before, places))
    return known.some()


def _part(ranges: Known, number: int, starts: Sequence[int], sizes: Sequence[int]) -> Range | None:
    """Return the one array of those that were stacked or concatenated that a slice is."""
    made = ranges.maker(number)
    if made is None or made.primitive not in ("stack", "concatenate"):
        return None
    (axis,) = numbers(made, "axis" if made.primitive == "stack" else "dimension") or (-1,)
    if not 0 <= axis < len(starts):
        return None
    at = 0
    for operand in made.operands:
        shape = ranges.value(operand).shape
        length = 1 if made.primitive == "stack" else shape[axis]
        rest = all(start == 0 for place, start in enumerate(starts) if place != axis)
        whole = shape if made.primitive != "stack" else (*shape[:axis], 1, *shape[axis:])
        if starts[axis] == at and rest and tuple(sizes) == whole:
            known = ranges.of(operand)
            if known is None or known.affine is None or made.primitive != "stack":
                return known
            base, terms = known.affine
            moved = {
                place + 1 if isinstance(place, int) and place >= axis else place: term
                for place, term in terms.items()
            }
            return replace(known, affine=(base, moved))
        at += length
    return None


def _rev(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    shape, turned = ranges.value(step.results[0]).shape, numbers(step, "dimensions")
    items = known.items[::-1] if known.items is not None and len(shape) == 1 else None
    if known.affine is None:
        return replace(known, items=items)
    base, terms = known.affine
    reversed_terms: dict[Axis, tuple[int, int]] = {}
    for axis, (by, count) in terms.items():
        if axis in turned:
            base += by * (count - 1)
            by = -by
        reversed_terms[axis] = by, count
    return replace(known, affine=(base, reversed_terms), items=items)


def _concatenate(ranges: Known, step: Step) -> Range | None:
    return _union(ranges, step.operands)


def _union(ranges: Known, operands: Sequence[int]) -> Range | None:
    """Return the range of all elements of some values."""
    one_axis = all(len(ranges.value(each).shape) == 1 for each in operands)
    rows = [_row_of(ranges, each) for each in operands] if one_axis else [None]
    if all(row is not None for row in rows):
        return Range.listed(item for row in rows for item in row or ())
    return _extremes(ranges, operands)


def _extremes(ranges: Known, operands: Sequence[int]) -> Range | None:
    """Return what is known of elements of several arrays, wherever they are."""
    parts = [ranges.of(each) for each in operands if 0 not in ranges.value(each).shape]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return Range(
        min(part.least for part in known),
        max(part.most for part in known),
        min(part.low for part in known),
        max(part.high for part in known),
    )


def _pad(ranges: Known, step: Step) -> Range | None:
    parts = _pair(ranges, step)
    if parts is None:
        return None
    a, b = parts
    return Range(
        min(a.least, b.least), max(a.most, b.most), max(a.most, b.most), min(a.least, b.least)
    )


def _dynamic_slice(ranges: Known, step: Step) -> Range | None:
    known, shape = ranges.of(step.operands[0]), ranges.value(step.operands[0]).shape
    if known is None:
        return None
    if len(shape) == 1 and numbers(step, "slice_sizes") == (1,):
        start = index_of(ranges, step.operands[1], shape[0])
        if start is not None and start.affine is not None and start.least >= 0:
            inside = start.most < shape[0]
            if inside and known.affine is not None and set(known.affine[1]) <= {0}:
                base, terms = known.affine
                by = terms[0][0] if 0 in terms else 0
                first, counters = start.affine
                moved = {axis: (by * each, count) for axis, (each, count) in counters.items()}
                return Range.of_affine(base + by * first, moved)
            covers = start.least == 0 and start.most == shape[0] - 1
            if inside and covers and [abs(by) for by, _ in start.affine[1].values()] == [1]:
                return known.bounds_alone()
    return known.some()


def _gather(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    fills = "FILL" in dict(step.parameters).get("mode", "FILL")
    return None if known is None or fills else known.some()


def _reordered(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else known.bounds_alone()


def _argument(ranges: Known, step: Step) -> Range | None:
    axes = numbers(step, "axes")
    shape = ranges.value(step.operands[0]).shape
    return Range.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None


def _reduce_max(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if _is_full(ranges, step) and not varies(known):
        whole = known.high if known.high == known.most else None
        if whole is not None:
            return Range.listed([whole])
    return Range(known.least, known.most, known.most, known.high)


def _reduce_min(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if _is_full(ranges, step) and not varies(known) and known.low == known.least:
        return Range.listed([known.least])
    return Range(known.least, known.most, known.low, known.least)


def _is_full(ranges: Known, step: Step) -> bool:
    return ranges.value(step.results[0]).shape == ()


def _reduce_sum(ranges: Known, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    value, result = ranges.value(step.operands[0]), ranges.value(step.results[0])
    if known is None or not elements(result):
        return None
    count = elements(value) // elements(result)
    if not count:
        return None
    if known.items is not None and len(known.items) == elements(value) and count == elements(value):
        return Range.listed([sum(known.items)])
    if known.affine is not None:
        base, terms = known.affine
        axes = numbers(step, "axes")
        total, kept = base * count, dict[Axis, tuple[int, int]]()
        for axis, (by, size) in terms.items():
            if axis in axes:
                total += by * (size * (size - 1) // 2) * (count // size)
            else:
                after = axis - sum(gone < axis for gone in axes) if isinstance(axis, int) else axis
                kept[after] = by * count, size
        return Range.of_affine(total, kept)
    whole = elements(result) == 1
    return Range(
        known.least * count,
        known.most * count,
        known.low + known.most * (count - 1) if whole else known.most * count,
        known.high + known.least * (count - 1) if whole else known.least * count,
    )


def _reduce_prod(ranges: Known, step: Step) -> Range | None:
    row = _row_of(ranges, step.operands[0])
    if row is None or not _is_full(ranges, step):
        return None
    return Range.listed([math.prod(row)])


def _row_of(ranges: Known, number: int) -> Sequence[int] | None:
    """Return the elements of a small array with one axis."""
    known, shape = ranges.of(number), ranges.value(number).shape
    if known is None or len(shape) != 1 or shape[0] > 4 * LISTED:
        return None
    if not shape[0]:
        return ()
    if known.items is not None:
        return known.items if len(known.items) == shape[0] else known.items * shape[0]
    if known.affine is None or not set(known.affine[1]) <= {0}:
        return None
    by = known.affine[1].get(0, (0, 0))[0]
    return [known.affine[0] + by * index for index in range(shape[0])]


def _cumulative(each: Callable[[int, int], int]) -> _Rule:
    def rule(ranges: Known, step: Step) -> Range | None:
        known, shape = ranges.of(step.operands[0]), ranges.value(step.operands[0]).shape
        if known is None or not shape:
            return None
        row = _row_of(ranges, step.operands[0])
        if row is not None:
            ordered = list(reversed(row)) if parameter(step, "reverse") else list(row)
            total, results = None, []
            for item in ordered:
                total = item if total is None else each(total, item)
                results.append(total)
            return Range.listed(results)
        if step.primitive != "cumsum":
            return None
        axis = numbers(step, "axis")
        length = shape[axis[0]] if axis else 0
        ends = (known.least * length, known.most * length, known.least, known.most)
        last = known.least * length
        if known.affine is not None and set(known.affine[1]) <= {0} and len(shape) == 1:
            base, terms = known.affine
            by = terms[0][0] if 0 in terms else 0
            last = base * length + by * (length * (length - 1) // 2)
            return Range(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
        return Range(min(ends), max(ends), max(ends), max(min(ends), last))

    return rule


def _dot(ranges: Known, step: Step) -> Range | None:
    pair = _pair(ranges, step)
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


def _affine_row(ranges: Known, number: int) -> tuple[int, int] | None:
    """Return the first element of an affine vector, and the difference of its elements."""
    known = ranges.of(number)
    if known is None or known.affine is None or len(ranges.value(number).shape) != 1:
        return None
    base, terms = known.affine
    return (base, terms[0][0] if 0 in terms else 0) if set(terms) <= {0} else None


def _pair(ranges: Known, step: Step) -> tuple[Range, Range] | None:
    if len(step.operands) != 2:
        return None
    a, b = (ranges.of(each) for each in step.operands)
    return None if a is None or b is None else (a, b)


def index_of(ranges: Known, number: int, size: int) -> Range | None:
    """Return the range of an index as written, before negative ones count from the end."""
    return ranges.of(written(ranges, number, size)[0])


def written(ranges: Known, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0`. An `i` that is at least `size`, or below `-size`, is out
    of bounds whichever of the two is selected.
    """
    for _ in range(8):
        step = ranges.maker(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = ranges.maker(_unconverted(ranges, step.operands[2]))
            before = _unconverted(ranges, step.operands[1])
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by = ranges.of(added.operands[1])
            counted = _unconverted(ranges, added.operands[0])
            if by is None or by.one != size or not ranges.same(counted, before):
                break
            return before, True
        if step.primitive == "convert_element_type" and not _fits(ranges, step):
            break
        if step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False


def _unconverted(ranges: Known, number: int) -> int:
    """Return the value that conversions between integers were made of."""
    step = ranges.maker(number)
    while step is not None and step.primitive == "convert_element_type" and _fits(ranges, step):
        number = step.operands[0]
        step = ranges.maker(number)
    return number


def _fits(ranges: Known, step: Step) -> bool:
    """Whether a conversion between integers keeps all values."""
    known, within = ranges.of(step.operands[0]), limits(ranges.value(step.results[0]).dtype)
    return (
        known is not None
        and within is not None
        and (within[0] <= known.least and known.most <= within[1])
    )


_UNCHANGING = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "copy",
     "transpose"}
)  # fmt: skip
_Rule = Callable[[Known, Step], Range | None]
PRIMITIVES: Mapping[str, _Rule] = {
    "abs": _abs,
    "add": _add,
    "add_any": _add,
    "and": _and,
    "argmax": _argument,
    "argmin": _argument,
    "broadcast_in_dim": _listed_again(_axes(_broadcast_axis)),
    "clamp": _clamp,
    "concatenate": _concatenate,
    "convert_element_type": _convert,
    "copy": _moved,
    "copy_p": _moved,
    "cummax": _cumulative(max),
    "cummin": _cumulative(min),
    "cumprod": _cumulative(lambda total, item: total * item),
    "cumsum": _cumulative(lambda total, item: total + item),
    "div": _div,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "eq": _compared(_is_equal, operator.eq),
    "gather": _gather,
    "ge": _compared(lambda a, b: _is_at_most(b, a), operator.ge),
    "gt": _compared(lambda a, b: _is_less(b, a), operator.gt),
    "integer_pow": _integer_pow,
    "le": _compared(_is_at_most, operator.le),
    "lt": _compared(_is_less, operator.lt),
    "max": _max,
    "min": _min,
    "mul": _mul,
    "ne": _compared(_is_different, operator.ne),
    "neg": _neg,
    "not": _not,
    "or": _or,
    "pad": _pad,
    "reduce_max": _reduce_max,
    "reduce_min": _reduce_min,
    "reduce_prod": _reduce_prod,
    "reduce_sum": _reduce_sum,
    "rem": _rem,
    "reshape": _reshape,
    "rev": _rev,
    "select_n": _select,
    "shift_left": _shift_left,
    "shift_right_arithmetic": _shift_right,
    "shift_right_logical": _shift_right,
    "sign": _sign,
    "slice": _slice,
    "sort": _reordered,
    "stack": lambda ranges, step: _extremes(ranges, step.operands),
    "square": lambda ranges, step: (
        None if (known := ranges.of(step.operands[0])) is None else power(known, 2)
    ),
    "squeeze": _listed_again(_axes(_squeezed_axis)),
    "stop_gradient": _moved,
    "sub": _sub,
    "tile": _reordered,
    "transpose": _axes(_transposed_axis),
}
