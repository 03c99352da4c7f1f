"""Which axes keep shapes from broadcasting, and where a new axis would let them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

Shape = tuple[int, ...]
_MOST = 6
"""Axes of the longer shape for which places of new axes are tried: more have no one place."""


@dataclass(frozen=True, slots=True)
class AxisConflict:
    """Two operands whose sizes differ in an axis."""

    operands: tuple[int, int]
    axis: int
    """Counted from the right, from 1."""
    sizes: tuple[int, int]


def conflict(shapes: Sequence[Shape]) -> AxisConflict | None:
    """Return the first axis from the right in which two shapes have sizes that are not 1."""
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [
            (at, shape[-axis])
            for at, shape in enumerate(shapes)
            if len(shape) >= axis and shape[-axis] != 1
        ]
        for (one, first), (other, second) in combinations(sizes, 2):
            if first != second:
                return AxisConflict((one, other), axis, (first, second))
    return None


def added_axes(first: Shape, second: Shape) -> list[str]:
    """Return the indices that add axes to the shorter shape so that both broadcast: `:, None`."""
    low, high = sorted((first, second), key=len)
    if not low or len(low) == len(high) or len(high) > _MOST or 1 in low:
        return []
    return [
        ", ".join(":" if at in kept else "None" for at in range(kept[0], len(high)))
        for kept in combinations(range(len(high)), len(low))
        if all(high[at] == size for at, size in zip(kept, low, strict=True))
    ]
