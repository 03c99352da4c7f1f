"""What is known of integers: bounds of all elements, and which bounds are reached.

Sound: nothing is claimed that an execution of the function could disprove. A claim is about all
elements of a value in all iterations of the loops around it. Values that are affine in the indices
of their axes and in loop counters (`jnp.arange(n) * 2 + i`) keep that, so that windows such as
`jnp.arange(n)[:, None] + jnp.arange(k)` are known exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

Axis = int | str
"""What an affine value varies with: an axis of the array, or a loop by its path."""
Terms = Mapping[Axis, tuple[int, int]]
"""By what it varies with: how much each step adds, and how many steps there are (at least 2)."""
_INTEGER = re.compile(r"(u?)int(\d+)")
LISTED = 64
"""Elements of arrays that are computed one by one."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of the integers of one value."""

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
    items: tuple[int, ...] | None = None
    """All elements of a small array, row by row; the same in all iterations."""
    ends: tuple[int, int] | None = None
    """The first element in the first iteration, and the last element in the last iteration, of
    what is computed elementwise from affine values.
    """

    @staticmethod
    def between(least: int, most: int) -> Range:
        """Return integers of which only the bounds are known."""
        return Range(least, most, most, least)

    @staticmethod
    def listed(items: Iterable[int]) -> Range:
        """Return known integers."""
        row = tuple(items)
        least, most = min(row), max(row)
        affine: tuple[int, Terms] | None = (least, {}) if least == most else None
        return Range(least, most, least, most, affine, row if len(row) <= LISTED else None)

    @staticmethod
    def of_affine(base: int, terms: Terms) -> Range:
        """Return the integers of an affine value."""
        terms = {axis: term for axis, term in terms.items() if term[0] and term[1] > 1}
        ends = [step * (count - 1) for step, count in terms.values()]
        least = base + sum(end for end in ends if end < 0)
        most = base + sum(end for end in ends if end > 0)
        return Range(least, most, least, most, (base, terms))

    @property
    def one(self) -> int | None:
        """The integer that all elements are, where it is one."""
        return self.least if self.least == self.most else None

    @property
    def corners(self) -> tuple[int, int] | None:
        """The first and the last element, where both are known."""
        if self.affine is not None:
            base, terms = self.affine
            return base, base + sum(step * (count - 1) for step, count in terms.values())
        if self.items is not None:
            return self.items[0], self.items[-1]
        return self.ends

    def some(self) -> Range:
        """Return what is known of any selection of the elements."""
        if self.one is not None:
            return Range.listed([self.least])
        return Range.between(self.least, self.most)

    def bounds_alone(self) -> Range:
        """Return the same bounds, without where elements are."""
        return replace(self, affine=None, items=None, ends=None)


def limits(dtype: str) -> tuple[int, int] | None:
    """Return the least and greatest integer of a dtype; `None` of one that is no integer."""
    if dtype == "bool":
        return 0, 1
    found = _INTEGER.fullmatch(dtype)
    if found is None:
        return None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def negative(known: Range) -> Range:
    affine = None
    if known.affine is not None:
        base, terms = known.affine
        affine = -base, {axis: (-by, count) for axis, (by, count) in terms.items()}
    items = None if known.items is None else tuple(-item for item in known.items)
    return Range(-known.most, -known.least, -known.high, -known.low, affine, items)


def summed(a: Range, b: Range, each: Callable[[int, int], int]) -> Range:
    if a.affine is not None and b.affine is not None:
        terms = dict(a.affine[1])
        for axis, (by, count) in b.affine[1].items():
            terms[axis] = (terms.get(axis, (0, count))[0] + by, count)
        exact = Range.of_affine(a.affine[0] + b.affine[0], terms)
        return replace(exact, items=paired(a, b, each))
    if (items := paired(a, b, each)) is not None:
        return Range.listed(items)
    known = Range(
        a.least + b.least,
        a.most + b.most,
        min(a.low + b.most, b.low + a.most),
        max(a.high + b.least, b.high + a.least),
    )
    return with_ends(known, a, b, each)


def with_ends(known: Range, a: Range, b: Range, each: Callable[[int, int], int]) -> Range:
    """Return a range with what the first and last elements of two values give."""
    if a.corners is None or b.corners is None:
        return known
    first, last = (each(x, y) for x, y in zip(a.corners, b.corners, strict=True))
    low, high = min(known.low, first, last), max(known.high, first, last)
    return Range(known.least, known.most, low, high, ends=(first, last))


def paired(a: Range, b: Range, each: Callable[[int, int], int]) -> tuple[int, ...] | None:
    """Return what elements of two small arrays give, of which one may be a scalar."""
    if a.items is None or b.items is None:
        return None
    if len(a.items) == len(b.items):
        return tuple(map(each, a.items, b.items))
    if len(a.items) == 1 or len(b.items) == 1:
        return tuple(each(one, other) for one, other in product(a.items, b.items))
    return None


def products(a: Range, b: Range) -> tuple[int, int] | None:
    """Return what some product of two values is at most, and what some is at least."""
    if a.affine is not None and b.affine is not None:
        counts = {axis: count for axis, (_, count) in (*a.affine[1].items(), *b.affine[1].items())}
        if len(counts) > 4:
            return None
        products = [
            _at(a.affine, at) * _at(b.affine, at)
            for ends in product((0, 1), repeat=len(counts))
            for at in [
                {axis: end * (n - 1) for (axis, n), end in zip(counts.items(), ends, strict=True)}
            ]
        ]
        return min(products), max(products)
    factor, known = (a.one, b) if a.one is not None else (b.one, a)
    if factor is None:
        return None
    ends = factor * known.low, factor * known.high
    return ends if factor >= 0 else ends[::-1]


def _at(affine: tuple[int, Terms], at: Mapping[Axis, int]) -> int:
    return affine[0] + sum(by * at[axis] for axis, (by, _) in affine[1].items())


def power(known: Range, exponent: int) -> Range:
    if known.items is not None:
        return Range.listed(item**exponent for item in known.items)
    if known.one is not None:
        return Range.listed([known.one**exponent])
    if exponent % 2 or known.least >= 0:
        return ends_of(known, lambda number: number**exponent)
    ends = (known.least**exponent, known.most**exponent)
    reached = max(max(known.high, 0) ** exponent, min(known.low, 0) ** exponent)
    return Range(0, max(ends), max(ends), reached)


def greater(a: Range, b: Range) -> Range:
    if (items := paired(a, b, max)) is not None:
        return Range.listed(items)
    if a.least >= b.most or b.least >= a.most:
        return a if a.least >= b.most else b
    return Range(
        max(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(a.high, b.high),
    )


def less(a: Range, b: Range) -> Range:
    return negative(greater(negative(a), negative(b)))


def truncated(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def monotone(known: Range, change: Callable[[int], int]) -> Range:
    """Return the range after a function that never decreases."""
    if known.items is not None:
        return Range.listed(map(change, known.items))
    return ends_of(known, change)


def ends_of(known: Range, change: Callable[[int], int]) -> Range:
    corners = known.corners
    return Range(
        change(known.least),
        change(known.most),
        change(known.low),
        change(known.high),
        ends=None if corners is None else (change(corners[0]), change(corners[1])),
    )


def picked(
    items: Sequence[int], shape: Sequence[int], places: Sequence[Sequence[int]]
) -> Iterator[int]:
    """Yield the elements of a small array at some places of each axis, row by row."""
    for at in product(*places):
        index = 0
        for place, size in zip(at, shape, strict=True):
            index = index * size + place
        yield items[index]


def varies(known: Range) -> bool:
    """Whether a value may differ between the iterations of a loop."""
    if known.items is not None:
        return False
    return known.affine is None or any(isinstance(axis, str) for axis in known.affine[1])
