"""The index that the user wrote, before JAX counts negative ones from the end."""

from __future__ import annotations

from collections.abc import Callable

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.intervals import Interval, limits
from jaxsight.wire.primitives import RESHAPES
from jaxsight.wire.program import Step

Known = Callable[[int], Interval | None]
"""Returns the interval of a value; `None` of one that is no integer."""
_UNCHANGING = RESHAPES | {"broadcast_in_dim", "convert_element_type", "copy", "transpose"}


def index_before_wrapping(flow: Flow, of: Known, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0`. An `i` that is at least `size`, or below `-size`, is out
    of bounds whichever of the two is selected.
    """
    for _ in range(8):
        step = flow.made_by(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = flow.made_by(_unconverted(flow, of, step.operands[2]))
            before = _unconverted(flow, of, step.operands[1])
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by, counted = of(added.operands[1]), _unconverted(flow, of, added.operands[0])
            is_wrapped = by is not None and by.one == size and flow.of(counted) == flow.of(before)
            return (before, True) if is_wrapped else (number, False)
        is_narrowed = step.primitive == "convert_element_type" and not _fits(flow, of, step)
        if is_narrowed or step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False


def _unconverted(flow: Flow, of: Known, number: int) -> int:
    """Return the value that conversions between integers were made of."""
    step = flow.made_by(number)
    while step is not None and step.primitive == "convert_element_type" and _fits(flow, of, step):
        number = step.operands[0]
        step = flow.made_by(number)
    return number


def _fits(flow: Flow, of: Known, step: Step) -> bool:
    """Whether a conversion between integers keeps all values."""
    interval, within = of(step.operands[0]), limits(flow.value(step.results[0]).dtype)
    if interval is None or within is None:
        return False
    return within[0] <= interval.least and interval.most <= within[1]
