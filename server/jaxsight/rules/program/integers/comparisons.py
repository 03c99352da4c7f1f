"""What comparisons, and selections by them, make of the intervals of integers.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from jaxsight.rules.program.integers.intervals import Interval, paired
from jaxsight.rules.program.integers.known_intervals import (
    KnownIntervals,
    TransferFunction,
    pair_of,
)
from jaxsight.wire.program import Step


def _compared(
    certain: Callable[[Interval, Interval], bool | None], compare: Callable[[int, int], bool]
) -> TransferFunction:
    def rule(intervals: KnownIntervals, step: Step) -> Interval | None:
        pair = pair_of(intervals, step)
        if pair is None:
            return None
        holds = certain(*pair)
        if holds is not None:
            return Interval.listed([int(holds)])
        integers = paired(*pair, lambda a, b: int(compare(a, b)))
        return Interval.listed(integers) if integers is not None else None

    return rule


def _is_less(a: Interval, b: Interval) -> bool | None:
    if a.most < b.least:
        return True
    return False if a.least >= b.most else None


def _is_at_most(a: Interval, b: Interval) -> bool | None:
    after = _is_less(b, a)
    return None if after is None else not after


def _is_equal(a: Interval, b: Interval) -> bool | None:
    if a.one is not None and a.one == b.one:
        return True
    return False if a.most < b.least or b.most < a.least else None


def _is_different(a: Interval, b: Interval) -> bool | None:
    equal = _is_equal(a, b)
    return None if equal is None else not equal


def _select(intervals: KnownIntervals, step: Step) -> Interval | None:
    which = intervals.of(step.operands[0])
    cases = [intervals.of(operand) for operand in step.operands[1:]]
    if which is not None and which.one is not None and 0 <= which.one < len(cases):
        return cases[which.one]
    if len(cases) != 2:
        return None
    a, b = cases
    if a is None or b is None:
        return None
    if which is not None and which.integers is not None:
        integers = _chosen(which.integers, a, b)
        if integers is not None:
            return Interval.listed(integers)
    if _is_floor(intervals, step):
        return a
    return Interval(
        min(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(min(a.high, b.least), min(b.high, a.least)),
    )


def _chosen(which: Sequence[int], a: Interval, b: Interval) -> tuple[int, ...] | None:
    rows = []
    for case in (a, b):
        row = (case.one,) * len(which) if case.one is not None else case.integers
        if row is None or len(row) != len(which):
            return None
        rows.append(row)
    return tuple(rows[bool(at)][index] for index, at in enumerate(which))


def _is_floor(intervals: KnownIntervals, step: Step) -> bool:
    """Return whether a selection is that of `//`, of operands that are never negative.

    `jnp.floor_divide` subtracts 1 from the quotient where the signs differ.
    """
    quotient, less = intervals.maker(step.operands[1]), intervals.maker(step.operands[2])
    if quotient is None or less is None or (quotient.primitive, less.primitive) != ("div", "sub"):
        return False
    if not intervals.same(less.operands[0], step.operands[1]):
        return False
    a, b = (intervals.of(operand) for operand in quotient.operands)
    return a is not None and b is not None and a.least >= 0 and b.least > 0


COMPARISONS: Mapping[str, TransferFunction] = {
    "eq": _compared(_is_equal, operator.eq),
    "ge": _compared(lambda a, b: _is_at_most(b, a), operator.ge),
    "gt": _compared(lambda a, b: _is_less(b, a), operator.gt),
    "le": _compared(_is_at_most, operator.le),
    "lt": _compared(_is_less, operator.lt),
    "ne": _compared(_is_different, operator.ne),
    "select_n": _select,
}
