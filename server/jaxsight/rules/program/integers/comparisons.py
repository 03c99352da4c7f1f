"""What comparisons, and selections by them, make of the ranges of integers.

Each function follows what https://docs.jax.dev/en/latest/jax.lax.html says of its operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from jaxsight.rules.program.integers.intervals import Range, paired
from jaxsight.rules.program.integers.known_ranges import KnownRanges, TransferFunction, pair_of
from jaxsight.wire.program import Step


def _compared(
    certain: Callable[[Range, Range], bool | None], compare: Callable[[int, int], bool]
) -> TransferFunction:
    def rule(ranges: KnownRanges, step: Step) -> Range | None:
        pair = pair_of(ranges, step)
        if pair is None:
            return None
        holds = certain(*pair)
        if holds is not None:
            return Range.listed([int(holds)])
        integers = paired(*pair, lambda a, b: int(compare(a, b)))
        return Range.listed(integers) if integers is not None else None

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


def _select(ranges: KnownRanges, step: Step) -> Range | None:
    which = ranges.of(step.operands[0])
    cases = [ranges.of(operand) for operand in step.operands[1:]]
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
            return Range.listed(integers)
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
        row = (case.one,) * len(which) if case.one is not None else case.integers
        if row is None or len(row) != len(which):
            return None
        rows.append(row)
    return tuple(rows[bool(at)][index] for index, at in enumerate(which))


def _is_floor(ranges: KnownRanges, step: Step) -> bool:
    """Return whether a selection is that of `//`, of operands that are never negative.

    `jnp.floor_divide` subtracts 1 from the quotient where the signs differ.
    """
    quotient, less = ranges.maker(step.operands[1]), ranges.maker(step.operands[2])
    if quotient is None or less is None or (quotient.primitive, less.primitive) != ("div", "sub"):
        return False
    if not ranges.same(less.operands[0], step.operands[1]):
        return False
    a, b = (ranges.of(operand) for operand in quotient.operands)
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
