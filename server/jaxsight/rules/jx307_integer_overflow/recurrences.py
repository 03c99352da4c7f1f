"""Run the integers that a loop carries, to find the iteration in which one overflows."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.inference import Intervals
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.steps import parameter
from jaxsight.wire.primitives import COPIES
from jaxsight.wire.program import Step

_ITERATIONS = 1000
"""How many iterations are run, at most: an overflow after them is missed, more take long."""
_COMPUTES = COPIES | {"add", "sub", "mul", "neg", "max", "min", "square", "integer_pow"}
"""Primitives that are computed: others may choose between values, of which one overflows."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The first iteration of a loop in which an equation overflows."""

    step: Step
    iteration: int
    """Counted from 1."""
    value: int
    """What it would be without wrapping around."""


def first_overflow(intervals: Intervals, flow: Flow, step: Step) -> Overflow | None:
    """Return the first overflow of integers that a `scan` carries from known ones."""
    loop, length = loop_of(flow, step), parameter(step, "length")
    if loop is None or not isinstance(length, int) or not loop.carries:
        return None
    known: dict[int, int] = {}
    for inner, outer in (*loop.captured.items(), *((c.inner, c.outer) for c in loop.carries)):
        start = intervals.of(outer)
        if start is not None and start.one is not None and not flow.value(inner).shape:
            known[inner] = start.one
    rows = {
        inner: start.line
        for inner, outer in loop.rows.items()
        if (start := intervals.of(outer)) is not None and start.line is not None
    }
    carries = {carry.inner: carry.output for carry in loop.carries}
    backwards = bool(parameter(step, "reverse"))
    for iteration in range(min(length, _ITERATIONS)):
        row = length - 1 - iteration if backwards else iteration
        given = known | {inner: base + by * row for inner, (base, by) in rows.items()}
        run = Intervals(flow, given=given, computes=_COMPUTES)
        after = {inner: run.of(output) for inner, output in carries.items() if inner in known}
        if run.overflow is not None:
            overflowing, value = run.overflow
            return Overflow(overflowing, iteration + 1, value)
        for inner, interval in after.items():
            if interval is None or interval.one is None:
                del known[inner]
            else:
                known[inner] = interval.one
        if known.keys().isdisjoint(carries):
            return None
    return None
