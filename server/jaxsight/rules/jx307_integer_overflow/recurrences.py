"""Run the integers that a loop carries, to find the iteration in which one overflows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jaxsight.rules.program.intervals import limits
from jaxsight.rules.program.ranges import Ranges, carried
from jaxsight.rules.program.view import Flow, captured, parameter
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
_KEEPS = frozenset({"convert_element_type", "copy", "stop_gradient"})


@dataclass(frozen=True, slots=True)
class Overflow:
    """The first iteration of a loop in which an equation overflows."""

    step: Step
    iteration: int
    """Counted from 1."""
    value: int
    """What it would be without wrapping around."""


def overflows(ranges: Ranges, flow: Flow, loop: Step) -> Iterator[Overflow]:
    """Yield the first overflow of integers that a `scan` carries from known ones."""
    length, count = parameter(loop, "length"), carried(loop)
    if loop.primitive != "scan" or not isinstance(length, int) or not count:
        return
    body, constants = loop.bodies[0], len(captured(loop))
    inputs = flow.inputs_of(body)
    if len(inputs) != len(loop.operands):
        return
    known: dict[int, int] = {}
    rows: dict[int, tuple[int, int]] = {}
    for index, (inner, outer) in enumerate(zip(inputs, loop.operands, strict=True)):
        start = ranges.of(outer)
        if start is None:
            continue
        if index < constants + count and start.one is not None:
            known[inner] = start.one
        elif index >= constants + count and start.affine is not None:
            base, terms = start.affine
            if set(terms) <= {0}:
                rows[inner] = base, terms[0][0] if 0 in terms else 0
    backwards = bool(parameter(loop, "reverse"))
    for iteration in range(min(length, _ITERATIONS)):
        at = length - 1 - iteration if backwards else iteration
        values = known | {inner: base + by * at for inner, (base, by) in rows.items()}
        computed: dict[int, int] = {}
        for slot, result in enumerate(body.outputs[:count]):
            inner = inputs[constants + slot]
            if inner not in known:
                continue
            value = _computed(flow, result, values, [_STEPS])
            if isinstance(value, _TooLarge):
                yield Overflow(value.step, iteration + 1, value.value)
                return
            if value is None:
                known.pop(inner)
            else:
                computed[inner] = value
        known |= computed
        if not computed:
            return


@dataclass(frozen=True, slots=True)
class _TooLarge:
    step: Step
    value: int


def _computed(
    flow: Flow, number: int, values: Mapping[int, int], left: list[int]
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
    left[0] -= 1
    if step is None or left[0] < 0 or literal.shape != ():
        return None
    operands: list[int] = []
    for each in step.operands:
        value = _computed(flow, each, values, left)
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
        result = operands[0] ** exponent
    elif step.primitive in _KEEPS:
        result = operands[0]
    elif step.primitive in _COMPUTES:
        result = _COMPUTES[step.primitive](*operands)
    else:
        return None
    return result if within[0] <= result <= within[1] else _TooLarge(step, result)
