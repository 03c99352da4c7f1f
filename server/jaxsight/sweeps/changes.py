"""Where XLA changes its mind: the same program with a larger size has other kernels.

A program that has other equations with another size, such as a Python loop over it, is no such
place: the function itself differs there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxsight.sweeps.points import SweepPoint


@dataclass(frozen=True, slots=True)
class KernelChange:
    """Two successive points whose kernels differ, of one program."""

    before: SweepPoint
    after: SweepPoint

    @property
    def gone(self) -> list[str]:
        """The kernels of the first that the second has not, as `2 × loop fusion`."""
        return _counted(Counter(self.before.kinds) - Counter(self.after.kinds))

    @property
    def new(self) -> list[str]:
        """The kernels of the second that the first has not."""
        return _counted(Counter(self.after.kinds) - Counter(self.before.kinds))


def _counted(kinds: Counter[str]) -> list[str]:
    return [f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.items()]


def changes(points: Sequence[SweepPoint]) -> Iterator[KernelChange]:
    """Yield the changes between successive points of a curve."""
    compiled = [point for point in points if point.is_compiled]
    for before, after in pairwise(compiled):
        if before.program == after.program and Counter(before.kinds) != Counter(after.kinds):
            yield KernelChange(before, after)


def other_programs(points: Sequence[SweepPoint]) -> bool:
    """Return whether the function itself differs between points: it has other equations."""
    return len({point.program for point in points if point.is_compiled}) > 1
