"""What is known of the integers of a program, as transfer functions of primitives see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxsight.rules.program.integers.intervals import LISTED, Range
from jaxsight.wire.program import Step, Value


class KnownRanges(Protocol):
    """What is known of the values of a program."""

    def of(self, number: int) -> Range | None:
        """Return the range of a value; `None` of one that is no integer."""

    def value(self, number: int) -> Value:
        """Return the value of a number."""

    def maker(self, number: int) -> Step | None:
        """Return the equation that makes a value."""

    def same(self, first: int, second: int) -> bool:
        """Whether two numbers are the same value."""


TransferFunction = Callable[[KnownRanges, Step], Range | None]


def pair_of(ranges: KnownRanges, step: Step) -> tuple[Range, Range] | None:
    if len(step.operands) != 2:
        return None
    a, b = (ranges.of(operand) for operand in step.operands)
    return None if a is None or b is None else (a, b)


def row_of(ranges: KnownRanges, number: int) -> Sequence[int] | None:
    """Return the elements of a small array with one axis."""
    range_, shape = ranges.of(number), ranges.value(number).shape
    if range_ is None or len(shape) != 1 or shape[0] > 4 * LISTED:
        return None
    if not shape[0]:
        return ()
    if range_.integers is not None:
        return range_.integers if len(range_.integers) == shape[0] else range_.integers * shape[0]
    if range_.affine is None or not set(range_.affine[1]) <= {0}:
        return None
    by = range_.affine[1].get(0, (0, 0))[0]
    return [range_.affine[0] + by * index for index in range(shape[0])]


def is_full(ranges: KnownRanges, step: Step) -> bool:
    return ranges.value(step.results[0]).shape == ()
