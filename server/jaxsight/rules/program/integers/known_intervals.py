"""What is known of the integers of a program, as transfer functions of primitives see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxsight.rules.program.integers.intervals import LISTED, Interval
from jaxsight.wire.program import Step, Value


class KnownIntervals(Protocol):
    """What is known of the values of a program."""

    def of(self, number: int) -> Interval | None:
        """Return the interval of a value; `None` of one that is no integer."""

    def value(self, number: int) -> Value:
        """Return the value of a number."""

    def maker(self, number: int) -> Step | None:
        """Return the equation that makes a value."""

    def same(self, first: int, second: int) -> bool:
        """Whether two numbers are the same value."""


TransferFunction = Callable[[KnownIntervals, Step], Interval | None]
"""Returns the interval of an equation's result; `None` where nothing is known."""


def pair_of(intervals: KnownIntervals, step: Step) -> tuple[Interval, Interval] | None:
    """Return the intervals of two operands; `None` where one of them is not known."""
    if len(step.operands) != 2:
        return None
    a, b = (intervals.of(operand) for operand in step.operands)
    return None if a is None or b is None else (a, b)


def row_of(intervals: KnownIntervals, number: int) -> Sequence[int] | None:
    """Return the elements of a small array with one axis."""
    interval, shape = intervals.of(number), intervals.value(number).shape
    if interval is None or len(shape) != 1 or shape[0] > 4 * LISTED:
        return None
    if not shape[0]:
        return ()
    if interval.integers is not None:
        return (
            interval.integers
            if len(interval.integers) == shape[0]
            else interval.integers * shape[0]
        )
    if interval.affine is None or not set(interval.affine[1]) <= {0}:
        return None
    by = interval.affine[1].get(0, (0, 0))[0]
    return [interval.affine[0] + by * index for index in range(shape[0])]


def is_full(intervals: KnownIntervals, step: Step) -> bool:
    """Whether a reduction is over all axes."""
    return intervals.value(step.results[0]).shape == ()
