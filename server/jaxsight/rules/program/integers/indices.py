"""The index that the user wrote, before JAX counts negative ones from the end."""

from __future__ import annotations

from jaxsight.rules.program.integers.intervals import Range, limits
from jaxsight.rules.program.integers.known_ranges import KnownRanges
from jaxsight.wire.program import Step


def index_of(ranges: KnownRanges, number: int, size: int) -> Range | None:
    """Return the range of an index as written, before negative ones count from the end."""
    return ranges.of(index_before_wrapping(ranges, number, size)[0])


def index_before_wrapping(ranges: KnownRanges, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0`. An `i` that is at least `size`, or below `-size`, is out
    of bounds whichever of the two is selected.
    """
    for _ in range(8):
        step = ranges.maker(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = ranges.maker(_unconverted(ranges, step.operands[2]))
            before = _unconverted(ranges, step.operands[1])
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by = ranges.of(added.operands[1])
            counted = _unconverted(ranges, added.operands[0])
            if by is None or by.one != size or not ranges.same(counted, before):
                break
            return before, True
        if step.primitive == "convert_element_type" and not _fits(ranges, step):
            break
        if step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False


def _unconverted(ranges: KnownRanges, number: int) -> int:
    """Return the value that conversions between integers were made of."""
    step = ranges.maker(number)
    while step is not None and step.primitive == "convert_element_type" and _fits(ranges, step):
        number = step.operands[0]
        step = ranges.maker(number)
    return number


def _fits(ranges: KnownRanges, step: Step) -> bool:
    """Whether a conversion between integers keeps all values."""
    range_, within = ranges.of(step.operands[0]), limits(ranges.value(step.results[0]).dtype)
    return (
        range_ is not None
        and within is not None
        and (within[0] <= range_.least and range_.most <= within[1])
    )


_UNCHANGING = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "copy",
     "transpose"}
)  # fmt: skip
