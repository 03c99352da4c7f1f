"""Run the integers that a loop carries, to find the iteration in which one overflows."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.inference import Intervals, carried
from jaxsight.rules.program.steps import captured, parameter
from jaxsight.wire.primitives import COPIES
from jaxsight.wire.program import Step

_ITERATIONS = 1000
"""How many iterations are run, at most."""
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


def first_overflow(intervals: Intervals, flow: Flow, loop: Step) -> Overflow | None:
    """Return the first overflow of integers that a `scan` carries from known ones."""
    length, count = parameter(loop, "length"), carried(loop)
    if loop.primitive != "scan" or not isinstance(length, int) or not count:
        return None
    body, constants = loop.bodies[0], len(captured(loop))
    inputs = flow.inputs_of(body)
    if len(inputs) != len(loop.operands):
        return None
    starts = [intervals.of(outer) for outer in loop.operands]
    known = {
        inner: start.one
        for inner, start in zip(inputs[: constants + count], starts, strict=False)
        if start is not None and start.one is not None and not flow.value(inner).shape
    }
    rows = {
        inner: start.line
        for inner, start in zip(
            inputs[constants + count :], starts[constants + count :], strict=True
        )
        if start is not None and start.line is not None
    }
    carries = dict(zip(inputs[constants:], body.outputs[:count], strict=False))
    backwards = bool(parameter(loop, "reverse"))
    for iteration in range(min(length, _ITERATIONS)):
        row = length - 1 - iteration if backwards else iteration
        given = known | {inner: base + by * row for inner, (base, by) in rows.items()}
        run = Intervals(flow, given=given, computes=_COMPUTES)
        after = {inner: run.of(output) for inner, output in carries.items() if inner in known}
        if run.overflow is not None:
            step, value = run.overflow
            return Overflow(step, iteration + 1, value)
        for inner, interval in after.items():
            if interval is None or interval.one is None:
                del known[inner]
            else:
                known[inner] = interval.one
        if known.keys().isdisjoint(carries):
            return None
    return None
