"""Run the integers that a loop carries, to find the iteration in which one overflows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.inference import Intervals, carried
from jaxsight.rules.program.integers.intervals import limits
from jaxsight.rules.program.steps import captured, parameter
from jaxsight.wire.primitives import COPIES
from jaxsight.wire.program import Step

_ITERATIONS = 1000
"""How many iterations are run, at most."""
_STEPS = 30
"""How many equations one carried integer is computed by, at most."""

_COMPUTES: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": max,
    "min": min,
    "square": lambda number: number * number,
}


@dataclass(frozen=True, slots=True)
class Overflow:
    """The first iteration of a loop in which an equation overflows."""

    step: Step
    iteration: int
    """Counted from 1."""
    value: int
    """What it would be without wrapping around."""


def overflows(intervals: Intervals, flow: Flow, loop: Step) -> Iterator[Overflow]:
    """Yield the first overflow of integers that a `scan` carries from known ones."""
    length, count = parameter(loop, "length"), carried(loop)
    if loop.primitive != "scan" or not isinstance(length, int) or not count:
        return
    body, constants = loop.bodies[0], len(captured(loop))
    inputs = flow.inputs_of(body)
    if len(inputs) != len(loop.operands):
        return
    integers, rows = _inputs(intervals, inputs, loop, constants + count)
    carries = list(zip(inputs[constants:], body.outputs[:count], strict=False))
    backwards = bool(parameter(loop, "reverse"))
    for iteration in range(min(length, _ITERATIONS)):
        row = length - 1 - iteration if backwards else iteration
        values = integers | {inner: base + by * row for inner, (base, by) in rows.items()}
        computed: dict[int, int] = {}
        for inner, output in carries:
            if inner not in integers:
                continue
            value = _computed(flow, output, values, [_STEPS])
            if isinstance(value, _TooLarge):
                yield Overflow(value.step, iteration + 1, value.value)
                return
            if value is None:
                integers.pop(inner)
            else:
                computed[inner] = value
        integers |= computed
        if not computed:
            return


def _inputs(
    intervals: Intervals, inputs: Sequence[int], loop: Step, first_row: int
) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Return the known integers that a loop begins with, and those that it reads row by row.

    The latter are the first row and the difference of rows.
    """
    integers: dict[int, int] = {}
    rows: dict[int, tuple[int, int]] = {}
    for index, (inner, outer) in enumerate(zip(inputs, loop.operands, strict=True)):
        start = intervals.of(outer)
        if start is None:
            continue
        if index < first_row and start.one is not None:
            integers[inner] = start.one
        elif index >= first_row and start.affine is not None:
            base, terms = start.affine
            if set(terms) <= {0}:
                rows[inner] = base, terms[0][0] if 0 in terms else 0
    return integers, rows


@dataclass(frozen=True, slots=True)
class _TooLarge:
    step: Step
    value: int


def _computed(
    flow: Flow, number: int, values: Mapping[int, int], budget: list[int]
) -> int | _TooLarge | None:
    """Return the integer of a value in an iteration; nothing where it is not known."""
    number = flow.of(number)
    if number in values:
        return values[number]
    literal = flow.values[number]
    if literal.said and flow.made_by(number) is None:
        try:
            return int(literal.said)
        except ValueError:
            return None
    step = flow.made_by(number)
    budget[0] -= 1
    if step is None or budget[0] < 0 or literal.shape != ():
        return None
    operands: list[int] = []
    for operand in step.operands:
        value = _computed(flow, operand, values, budget)
        if not isinstance(value, int):
            return value
        operands.append(value)
    within = limits(literal.dtype)
    if within is None:
        return None
    if step.primitive == "integer_pow":
        exponent = parameter(step, "y")
        if not isinstance(exponent, int) or not 0 <= exponent <= 64:
            return None
        computed = operands[0] ** exponent
    elif step.primitive in COPIES:
        computed = operands[0]
    elif step.primitive in _COMPUTES:
        computed = _COMPUTES[step.primitive](*operands)
    else:
        return None
    return computed if within[0] <= computed <= within[1] else _TooLarge(step, computed)
