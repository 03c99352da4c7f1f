"""Find arithmetic of known integers whose result does not fit in its dtype."""

from __future__ import annotations

from jaxsight.rules.jx307_integer_overflow.integers import (
    SIGNED,
    Integers,
    bits_of,
    figure,
    holds_note,
    wider_help,
)
from jaxsight.rules.program.integers.intervals import Interval, limits
from jaxsight.rules.program.steps import numbers
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step


def certain_overflow(integers: Integers, step: Step) -> Violation | None:
    """Arithmetic of known integers whose result does not fit."""
    interval = _exact(integers, step)
    if interval is None:
        return None
    if step.primitive == "shift_left":
        by = integers.intervals.of(step.operands[1])
        if by is None or by.high < bits_of(integers.dtype(step)):
            return None  # the sign bit of a mask
    if (
        step.primitive == "convert_element_type"
        and interval.one is not None
        and (interval.one < 0 or bits_of(integers.dtype(step)) >= 32)
    ):
        return None  # all bits of a mask
    return _overflow(integers, step, interval)


def _exact(integers: Integers, step: Step) -> Interval | None:
    """Return what an equation computes before it wraps around."""
    match step.primitive:
        case "convert_element_type":
            return integers.intervals.of(step.operands[0])
        case "iota":
            axis, shape = numbers(step, "dimension"), integers.flow.value(step.results[0]).shape
            return Interval.listed([0, max(shape[axis[0]] - 1, 0)]) if axis else None
        case _:
            return integers.intervals.result(step)


def _overflow(integers: Integers, step: Step, interval: Interval) -> Violation | None:
    dtype = integers.dtype(step)
    within = limits(dtype)
    if within is None:
        return None
    if interval.high > within[1]:
        message = f"{integers.quoted(step)} overflows {dtype}: it reaches {figure(interval.high)}"
    elif interval.low < within[0]:
        wraps = "wraps below zero in" if within[0] == 0 else "overflows"
        message = f"{integers.quoted(step)} {wraps} {dtype}: it falls to {figure(interval.low)}"
    else:
        return None
    below = interval.high <= within[1] and within[0] == 0
    advice = SIGNED if below else wider_help(dtype)
    if step.primitive == "iota":
        advice = "use a wider dtype: `dtype=jnp.int32`"
    return Violation(message, step.path, help=advice, notes=(holds_note(dtype),))
