"""What is known of numbers: bounds of all elements, and for integers which bounds are reached.

Sound: nothing is claimed that an execution of the function could disprove. A claim is about all
elements of a value in all iterations of the loops around it. Values that are affine in the indices
of their axes and in loop counters (`jnp.arange(n) * 2 + i`) keep that, so that windows such as
`jnp.arange(n)[:, None] + jnp.arange(k)` are known exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from jaxsight.rules.program.flow import Flow
from jaxsight.wire.program import ProgramValue, Step

Axis = int | str
"""What an affine value varies with: an axis of the array, or a loop by its path."""
Terms = Mapping[Axis, tuple[int, int]]
"""By what it varies with: how much each step adds, and how many steps there are (at least 2)."""
_INTEGER = re.compile(r"(u?)int(\d+)")


@dataclass(frozen=True, slots=True)
class Interval:
    """What is known of the integers of one value; of floats, only bounds are."""

    least: int
    """No element is below."""
    most: int
    """No element is above."""
    low: int
    """Some element is this or below."""
    high: int
    """Some element is this or above."""
    affine: tuple[int, Terms] | None = None
    """The first element, and what adds to it."""

    @staticmethod
    def between(least: int, most: int) -> Interval:
        """Return integers of which only the bounds are known."""
        return Interval(least, most, most, least)

    @staticmethod
    def of_floats(least: float, most: float) -> Interval:
        """Return bounds of floats, which integers' functions add, multiply and compare as well."""
        return Interval.between(least, most)  # type: ignore[arg-type]

    @staticmethod
    def listed(integers: Iterable[int]) -> Interval:
        """Return known integers."""
        row = tuple(integers)
        least, most = min(row), max(row)
        return Interval(least, most, least, most, (least, {}) if least == most else None)

    @staticmethod
    def of_affine(base: int, terms: Terms) -> Interval:
        """Return the integers of an affine value."""
        terms = {axis: term for axis, term in terms.items() if term[0] and term[1] > 1}
        ends = [step * (count - 1) for step, count in terms.values()]
        least = base + sum(end for end in ends if end < 0)
        most = base + sum(end for end in ends if end > 0)
        return Interval(least, most, least, most, (base, terms))

    @property
    def one(self) -> int | None:
        """The integer that all elements are, where it is one."""
        return self.least if self.least == self.most else None

    @property
    def line(self) -> tuple[int, int] | None:
        """The first element and the difference of elements, where that varies with axis 0 alone."""
        if self.affine is None or not set(self.affine[1]) <= {0}:
            return None
        base, terms = self.affine
        return base, terms[0][0] if 0 in terms else 0

    def some(self) -> Interval:
        """Return what is known of any selection of the elements."""
        if self.one is not None:
            return Interval.listed([self.least])
        return Interval.between(self.least, self.most)

    def bounds_alone(self) -> Interval:
        """Return the same bounds, without where elements are."""
        return replace(self, affine=None)


def limits(dtype: str) -> tuple[int, int] | None:
    """Return the least and greatest integer of a dtype; `None` of one that is no integer."""
    if dtype == "bool":
        return 0, 1
    match = _INTEGER.fullmatch(dtype)
    if match is None:
        return None
    bits = int(match[2])
    return (0, 2**bits - 1) if match[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def negative(interval: Interval) -> Interval:
    """Return the interval of the negatives."""
    affine = None
    if interval.affine is not None:
        base, terms = interval.affine
        affine = -base, {axis: (-by, count) for axis, (by, count) in terms.items()}
    return Interval(-interval.most, -interval.least, -interval.high, -interval.low, affine)


def summed(a: Interval, b: Interval) -> Interval:
    """Return the interval of sums of elements that meet."""
    if a.affine is not None and b.affine is not None:
        terms = dict(a.affine[1])
        for axis, (by, count) in b.affine[1].items():
            terms[axis] = (terms.get(axis, (0, count))[0] + by, count)
        return Interval.of_affine(a.affine[0] + b.affine[0], terms)
    return Interval(
        a.least + b.least,
        a.most + b.most,
        min(a.low + b.most, b.low + a.most),
        max(a.high + b.least, b.high + a.least),
    )


def corner_products(a: Interval, b: Interval) -> list[int]:
    """Return the products of the bounds of two values; 0 times infinity is 0."""
    return [x * y if x and y else 0 for x in (a.least, a.most) for y in (b.least, b.most)]


def products(a: Interval, b: Interval) -> tuple[int, int] | None:
    """Return what some product of two values is at most, and what some is at least."""
    factor, interval = (a.one, b) if a.one is not None else (b.one, a)
    if factor is None:
        return None
    ends = factor * interval.low, factor * interval.high
    return ends if factor >= 0 else ends[::-1]


def power(interval: Interval, exponent: int) -> Interval:
    """Return the interval of a power that is not negative."""
    if interval.one is not None:
        return Interval.listed([interval.one**exponent])
    if exponent % 2 or interval.least >= 0:
        return monotone(interval, lambda number: number**exponent)
    return Interval.between(0, max(interval.least**exponent, interval.most**exponent))


def joined(*parts: Interval) -> Interval:
    """Return the interval of elements that are each of any of some values."""
    return Interval.between(min(part.least for part in parts), max(part.most for part in parts))


def greater(a: Interval, b: Interval) -> Interval:
    """Return the interval of the greater of elements that meet."""
    if a.least >= b.most or b.least >= a.most:
        return a if a.least >= b.most else b
    return Interval(
        max(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(a.high, b.high),
    )


def less(a: Interval, b: Interval) -> Interval:
    """Return the interval of the lesser of elements that meet."""
    return negative(greater(negative(a), negative(b)))


def truncated(number: int, by: int) -> int:
    """Return a quotient, rounded towards zero."""
    return number // by if number >= 0 else -(-number // by)


def monotone(interval: Interval, change: Callable[[int], int]) -> Interval:
    """Return the interval after a function that never decreases."""
    return Interval(
        change(interval.least),
        change(interval.most),
        change(interval.low),
        change(interval.high),
    )


def varies(interval: Interval) -> bool:
    """Whether a value may differ between the iterations of a loop."""
    return interval.affine is None or any(isinstance(axis, str) for axis in interval.affine[1])


# An equation of known numbers, as the functions see it that say what primitives make of them.


@dataclass(frozen=True, slots=True)
class Applied:
    """An equation, and what is known of the values of its program."""

    step: Step
    flow: Flow
    of: Callable[[int], Interval]
    """Returns the interval of a value."""

    @property
    def before(self) -> ProgramValue:
        """The first operand."""
        return self.flow.value(self.step.operands[0])

    @property
    def after(self) -> ProgramValue:
        """The result."""
        return self.flow.value(self.step.results[0])


Transfer = Callable[..., Interval | None]
"""Returns the interval of an equation's result of those of its operands; `None` where nothing is
known.
"""
TRANSFERS: dict[str, Transfer] = {}
"""By primitive."""


def transfers(*primitives: str) -> Callable[[Transfer], Transfer]:
    """Register what primitives make of the intervals of their operands, which are all known."""

    def register(transfer: Transfer) -> Transfer:
        TRANSFERS.update(dict.fromkeys(primitives, transfer))
        return transfer

    return register


def computes(function: Transfer, *primitives: str) -> None:
    """Register a function of the intervals of the operands alone."""
    transfers(*primitives)(lambda applied, *operands: function(*operands))
