"""The index that the user wrote, before JAX counts negative ones from the end."""

from __future__ import annotations

from jaxsight.rules.program.integers.intervals import Interval, limits
from jaxsight.rules.program.integers.known_intervals import KnownIntervals
from jaxsight.wire.program import Step


def index_of(intervals: KnownIntervals, number: int, size: int) -> Interval | None:
    """Return the interval of an index as written, before negative ones count from the end."""
    return intervals.of(index_before_wrapping(intervals, number, size)[0])


def index_before_wrapping(intervals: KnownIntervals, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0`. An `i` that is at least `size`, or below `-size`, is out
    of bounds whichever of the two is selected.
    """
    for _ in range(8):
        step = intervals.maker(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = intervals.maker(_unconverted(intervals, step.operands[2]))
            before = _unconverted(intervals, step.operands[1])
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by = intervals.of(added.operands[1])
            counted = _unconverted(intervals, added.operands[0])
            if by is None or by.one != size or not intervals.same(counted, before):
                break
            return before, True
        if step.primitive == "convert_element_type" and not _fits(intervals, step):
            break
        if step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False


def _unconverted(intervals: KnownIntervals, number: int) -> int:
    """Return the value that conversions between integers were made of."""
    step = intervals.maker(number)
    while step is not None and step.primitive == "convert_element_type" and _fits(intervals, step):
        number = step.operands[0]
        step = intervals.maker(number)
    return number


def _fits(intervals: KnownIntervals, step: Step) -> bool:
    """Whether a conversion between integers keeps all values."""
    interval, within = (
        intervals.of(step.operands[0]),
        limits(intervals.value(step.results[0]).dtype),
    )
    return (
        interval is not None
        and within is not None
        and (within[0] <= interval.least and interval.most <= within[1])
    )


_UNCHANGING = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "copy",
     "transpose"}
)  # fmt: skip
