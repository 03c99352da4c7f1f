"""The index that the user wrote, before JAX counts negative ones from the end."""

from __future__ import annotations

from collections.abc import Callable

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.interval import Interval, limits
from jaxsight.wire.primitives import RESHAPES
from jaxsight.wire.program import Step

Known = Callable[[int], Interval | None]
"""Returns the interval of a value; `None` of one that is no integer."""
_UNCHANGING = RESHAPES | {"broadcast_in_dim", "convert_element_type", "copy", "transpose"}
_NEAR = 8
"""Equations from an index to its `select_n`: reshapes and conversions by JAX and users."""


def index_before_wrapping(flow: Flow, of: Known, number: int, size: int) -> tuple[int, bool]:
    """Return the index before JAX counted negative ones from the end, and whether it does.

    JAX selects `i + size` where `i < 0` (`_normalize_index` in jax/_src/numpy/indexing.py). An `i`
    that is at least `size`, or below `-size`, is out of bounds whichever of the two is selected.
    """

    def keeps(step: Step) -> bool:
        """Whether an equation is a conversion between integers that keeps all values."""
        interval, within = of(step.operands[0]), limits(flow.value(step.results[0]).dtype)
        if step.primitive != "convert_element_type" or interval is None or within is None:
            return False
        return within[0] <= interval.least and interval.most <= within[1]

    for _ in range(_NEAR):
        step = flow.made_by(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = flow.made_by(flow.before(step.operands[2], keeps))
            before = flow.before(step.operands[1], keeps)
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by, counted = of(added.operands[1]), flow.before(added.operands[0], keeps)
            is_wrapped = by is not None and by.one == size and counted == before
            return (before, True) if is_wrapped else (number, False)
        is_narrowed = step.primitive == "convert_element_type" and not keeps(step)
        if is_narrowed or step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False
