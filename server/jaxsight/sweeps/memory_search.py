"""The largest size with which a program fits in memory, found with few compiles.

Memory grows with a size nearly as a polynomial: products of dimensions, padded to the alignment of
buffers. So the next size to try is where a polynomial through the nearest known sizes meets the
capacity, and the last two are a size that fits and the next larger one, which does not. Where XLA
changes its mind in between, the polynomial is wrong, and the interval of the two is halved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jaxsight.sweeps.points import LargestSize, Sizes, SweepPoint, SweptSize

MOST_COMPILES = 8
"""Programs that a search compiles at most, a choice: as long as the sweep of a few points."""
_BEYOND = 2**40
"""Sizes above this are not tried, a choice: their arrays exceed any device's memory."""
_PADDED, _FLAT = 128, 4
"""Memory that is equal at a size from the first number on and at one `_FLAT` times as large does
not grow: that of smaller ones may be equal by padding (a row of a TPU has 128 lanes)."""
_FARTHEST = 4096
"""Ratio of a size that is tried to the largest that fits, at most, a choice: curves of small sizes
say little about much larger ones, which take long to trace where Python computes with them."""
_FAR, _NEAR = 4, 3
"""Sizes that a polynomial goes through: memory is linear in a batch, quadratic in a length of
attention, cubic in the side of a grid. Between close sizes, padding makes it a staircase, which
high orders follow too far."""


@dataclass(slots=True)
class MemorySearch:
    """A search for the largest size that fits: compile `following`, and `take` the point.

    Sizes are `start` and its successors at distances of `step`.
    """

    name: str
    capacity: int
    start: int
    step: int = 1
    known: dict[int, float] = field(default_factory=dict)
    """The memory of programs by size: infinite for one that the compiler rejects as too large."""
    others: Sizes = field(default_factory=dict)
    program: tuple[str, ...] = ()
    """The equations of the program with the largest known size."""
    reason: str = ""
    """Why the search cannot begin, or go on."""
    compiles: int = 0
    _widths: list[int] = field(default_factory=list)
    _strides: int = 0

    @staticmethod
    def of(size: SweptSize, points: Sequence[SweepPoint], capacity: int) -> MemorySearch:
        """Return the search along a curve."""
        others = {name: n for name, n in points[0].sizes.items() if name != size.name}
        search = MemorySearch(size.name, capacity, size.values[0], size.step, others=others)
        for point in points:
            if (needed := _needed(point)) is not None:
                search.known[point.sizes[size.name]] = needed
        compiled = [point.program for point in points if point.is_compiled]
        search.program = compiled[-1] if compiled else ()
        if not search.known:
            search.reason = points[0].problem or "the memory of its programs is not known"
        elif compiled[-2:] != [search.program] * len(compiled[-2:]):
            search.reason = _another_program(size.name)
        search._look_for_growth()
        return search

    def following(self) -> Sizes | None:
        """Return the sizes to compile next; `None` if there are none, or no more are allowed."""
        found = None if self.reason else self.candidate()
        return None if found is None else {self.name: found, **self.others}

    def take(self, point: SweepPoint) -> None:
        """Take the point that was compiled last."""
        size, needed = point.sizes[self.name], _needed(point)
        if needed is not None:
            self.known[size] = needed
            self.compiles += 1
            if point.is_compiled and point.program != self.program:
                self.reason = _another_program(self.name)
            self._look_for_growth()
            return
        # The function may divide the size, and cannot be traced with others than multiples.
        if (common := math.gcd(*(size - self.start for size in self.known))) > self.step:
            self.step = common
        else:
            self.reason = f"{self.name}={size:,}: {point.problem or 'its memory is not known'}"

    def largest(self) -> LargestSize:
        """Return the answer so far."""
        low = self.low
        return LargestSize(
            self.name,
            low,
            self.capacity,
            None if low is None else int(self.known[low]),
            self.high,
            self.others,
            self.compiles,
            self.is_done and low is not None,
            self.reason,
        )

    def _look_for_growth(self) -> None:
        """End the search if memory has not grown for long."""
        largest = max(self.known, default=0)
        before = [size for size in self.known if _PADDED <= size <= largest / _FLAT]
        if not self.reason and before and self.known[max(before)] == self.known[largest]:
            self.reason = f"its memory does not grow with {self.name}"

    @property
    def low(self) -> int | None:
        """The largest size that is known to fit; `None` if none is."""
        fitting = (size for size, needed in self.known.items() if needed <= self.capacity)
        return max(fitting, default=None)

    @property
    def high(self) -> int | None:
        """The smallest size above `low` that is known not to fit; `None` if none is."""
        low = self.low
        too_large = (
            size
            for size, needed in self.known.items()
            if needed > self.capacity and (low is None or size > low)
        )
        return min(too_large, default=None)

    @property
    def is_done(self) -> bool:
        """Whether the answer is exact."""
        low, high = self.low, self.high
        if low is None:
            return high is not None and high <= self.start
        return high is not None and high - low <= self.step

    def candidate(self) -> int | None:
        """Return the next size to compile; `None` if there is none, or no more are allowed."""
        if self.is_done or self.compiles >= MOST_COMPILES or not self.known:
            return None
        low, high = self.low, self.high
        if low is None:
            assert high is not None
            predicted = self._predicted(self.start, high)
            found = predicted if predicted is not None else (self.start + high) // 2
            return min(max(self._on_grid(found), self.start), high - self.step)
        if high is None:
            if (predicted := self._predicted(low, _BEYOND)) is None:
                predicted = max(2 * low, low + self.step)
            found = self._on_grid(min(predicted, _FARTHEST * max(low, 1)))
            if found <= low:  # it fits against the prediction: look further each time
                self._strides += 1
                found = low + self.step * 4 ** (self._strides - 1)
            return found if found <= _BEYOND else None
        width = high - low
        self._widths.append(width)
        predicted = self._predicted(low, high)
        is_slow = len(self._widths) > 2 and 2 * width > self._widths[-3]
        if predicted is None or is_slow:
            predicted = low + width // 2
        return min(max(self._on_grid(predicted), low + self.step), high - self.step)

    def _on_grid(self, size: float) -> int:
        return self.start + math.floor((size - self.start) / self.step) * self.step

    def _predicted(self, low: int, high: int) -> float | None:
        """Return where the memory is predicted to meet the capacity between two sizes, if so."""
        finite = [(size, needed) for size, needed in self.known.items() if needed < math.inf]
        points = _FAR if self.compiles == 0 else _NEAR
        nearest = sorted(finite, key=lambda known: abs(known[1] - self.capacity))[:points]
        for number in range(len(nearest), 1, -1):
            memory = polynomial(nearest[:number])
            grows = memory((low + high) / 2) >= memory(low)
            if grows and memory(low) <= self.capacity < memory(high):
                return _reaching(self.capacity, memory, low, high)
        return None


def _another_program(name: str) -> str:
    """Return why a search ends where a Python loop over a size makes longer and longer programs."""
    return f"not searched further: its program is another one with each {name}"


def _needed(point: SweepPoint) -> float | None:
    return math.inf if point.is_too_large else point.needed_bytes


def polynomial(points: list[tuple[int, float]]) -> Callable[[float], float]:
    """Return the polynomial through points, by Newton's divided differences."""
    sizes = [float(size) for size, _ in points]
    coefficients = [needed for _, needed in points]
    for order in range(1, len(points)):
        for at in range(len(points) - 1, order - 1, -1):
            run = sizes[at] - sizes[at - order]
            coefficients[at] = (coefficients[at] - coefficients[at - 1]) / run

    def value(size: float) -> float:
        total = coefficients[-1]
        for coefficient, base in zip(coefficients[-2::-1], sizes[-2::-1], strict=True):
            total = total * (size - base) + coefficient
        return total

    return value


def _reaching(capacity: float, memory: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that grows between two numbers reaches a value, by halving."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if memory(middle) <= capacity else (low, middle)
    return low
