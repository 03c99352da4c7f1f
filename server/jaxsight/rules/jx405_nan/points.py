"""Search for a point where a hidden case makes the gradient of a selection NaN.

All arguments are arrays of one number each, so that most arrays of the program are, too, and one
number stands for each. From an unsafe function, the equations before it are undone to the argument
for which its slope is infinite or NaN; there, the program says whether the selection hides it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.rules.jx405_nan.scalars import (
    INVERSES,
    KEEPS,
    LOGICAL,
    SIDES,
    UNSAFE,
    VALUES,
    is_steep,
    over,
    power,
)
from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import comparisons_behind, is_flat
from jaxsight.rules.program.rounding import rounded
from jaxsight.wire.primitives import PICKS
from jaxsight.wire.program import Step

_USUAL = (1.0, 1.5, 0.75, 1.25, 1.75, 0.625)
"""Numbers of arguments that nothing is wrong with, one after the other: equal ones would cancel."""
_EQUATIONS = 150
"""Equations before a selection that are run; what is computed by others is any number."""
_SMALL = 1e-3
"""A condition on a number near 0 guards what is near 0, as a series does. It is no guard beyond 1:
a choice."""
_UNDONE, _POINTS = 100, 6
"""Equations that are undone, and points that are tried, for an operand."""
_WORK = 60_000
"""Equations that are run for a program, about 0.1 s: more are not fast while typing."""

Numbers = dict[int, float | None]
"""By value its number; `None` where that is not known."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where the gradient is NaN for what the selection hides, and which equation makes it so."""

    cause: Step
    holds: bool
    """Whether the condition is true there."""
    is_infinite: bool
    """Whether the derivative of that equation is infinite there, else NaN."""
    at: tuple[tuple[str, float], ...]
    """Arguments by name. Empty if values were chosen that no argument gives directly."""


class Gradients:
    """The derivatives of one program's selections."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.known = ValueBounds(flow)
        self.work = _WORK
        """How many equations may still be run."""
        self.order = {path: index for index, path in enumerate(flow.steps)}
        self.differentiable = {
            number
            for number, value in enumerate(flow.values)
            if value.is_inexact and not value.is_constant and flow.producer(number) is None
        }
        """The values that depend on an inexact input by differentiable operations."""
        for step in flow.steps.values():
            if not is_flat(flow, step) and any(
                flow.of(operand) in self.differentiable for operand in step.operands
            ):
                self.differentiable.update(step.results)

    def point(self, select: Step) -> Point | None:
        """Return where a hidden case makes the gradient of a selection NaN, if it is found.

        Its value is finite there, and so is the gradient by what the selection shows.
        """
        cone = _Cone(self, select)
        points = (cone.point(step) for step in cone.run if cone.is_unsafe(step))
        return next((point for point in points if point is not None), None)


class _Cone:
    """A selection, the equations that it is computed by, and the values that these begin with."""

    def __init__(self, gradients: Gradients, select: Step) -> None:
        self.gradients, self.flow = gradients, gradients.flow
        self.predicate, *self.cases = map(self.flow.of, select.operands)
        self.makers: dict[int, Step] = {}
        waiting = list(dict.fromkeys((self.predicate, *self.cases)))
        for number in waiting:
            step = self.flow.producer(number)
            if step is not None and _is_run(self.flow, step) and len(self.makers) < _EQUATIONS:
                self.makers[number] = step
                waiting += [n for n in map(self.flow.of, step.operands) if n not in waiting]
        self.run = sorted(self.makers.values(), key=lambda step: gradients.order[step.path])
        self.free: set[int] = set()
        """The values that a number is looked for of."""
        self.usual = {n: self._begin(n) for n in waiting if n not in self.makers}
        self.numbers = self._numbers(self.usual)
        """The usual numbers of all values."""
        self.origins = {number: {number} for number in self.free}
        """By value those of them that it is computed from."""
        for step in self.run:
            behind = (self.origins.get(self.flow.of(n), set()) for n in step.operands)
            self.origins[self.flow.of(step.results[0])] = set[int]().union(*behind)
        self.comparisons = [
            set(map(self.flow.of, step.operands))
            for step in comparisons_behind(self.flow, select.operands[0])
        ]
        """What the condition compares."""

    def _begin(self, number: int) -> float | None:
        """Return the usual number of a value that is not run."""
        value, known = self.flow.value(number), self.gradients.known
        if (scalar := self.flow.literal(number)) is not None:
            return scalar
        if value.dtype.startswith("complex") or value.is_constant:
            return None
        if number in self.gradients.differentiable:
            self.free.add(number)
        elif number not in self.flow.inputs:  # as a number drawn, or read from a table
            return None
        usual = _USUAL[len(self.free) % len(_USUAL)] if number in self.free else 1.0
        low, high = known.bounds(number)
        return rounded(min(max(usual, low), high), value.dtype)

    def is_unsafe(self, step: Step) -> bool:
        """Whether something differentiable may make a slope infinite, and the condition is on it.

        Whoever writes a derivative rule takes care of its slopes.
        """
        if step.primitive not in UNSAFE or step.path in self.flow.ruled:
            return False
        operands = list(map(self.flow.of, step.operands))
        about = self.origins.get(self.predicate, set())
        return not self.gradients.differentiable.isdisjoint(operands) and any(
            about & self.origins.get(operand, set()) for operand in operands
        )

    def point(self, step: Step) -> Point | None:
        """Return a point where the selection hides the infinite slope of an equation.

        There is none if it is shown at more points: then the condition is on something else.
        """
        hidden = list[Numbers]()
        shown = 0
        for changed in self._changes(step):
            if self.gradients.work < len(self.run):
                return None
            self.gradients.work -= len(self.run)
            numbers = self._numbers({**self.usual, **changed})
            index = numbers[self.predicate]
            if not self._is_steep(step, numbers) or index not in (0, 1):
                continue
            result = self.flow.of(step.results[0])
            if result in self._reached(numbers, self.cases[int(index)]):
                shown += 1
            elif result in self._reached(numbers, self.cases[1 - int(index)]):
                hidden.append(numbers)
        if shown > len(hidden):
            return None
        return next((self._said(step, at) for at in hidden if self._is_guarded(step, at)), None)

    def _changes(self, step: Step) -> Iterator[dict[int, float]]:
        """Yield the arguments for which an unsafe equation has unsafe operands."""
        for goal in UNSAFE[step.primitive]:
            ways = (
                itertools.islice(self._undone(self.flow.of(step.operands[at]), target), _POINTS)
                for at, target in goal.items()
            )
            for way in itertools.islice(itertools.product(*ways), _POINTS):
                yield dict(way)

    def _undone(self, number: int, target: float) -> Iterator[tuple[int, float]]:
        """Yield arguments with the number that makes a value another one, others being usual."""
        known, waiting = self.gradients.known, [(number, target)]
        for operand, wanted in waiting:
            if operand in self.free and math.isfinite(wanted):
                low, high = known.bounds(operand)
                if operand in self.flow.inputs or (
                    low <= wanted <= high and not (wanted <= 0 and known.is_positive(operand))
                ):
                    yield operand, rounded(wanted, self.flow.value(operand).dtype)
            elif operand in self.makers and len(waiting) < _UNDONE:
                waiting += self._operands_for(self.makers[operand], wanted)

    def _operands_for(self, step: Step, target: float) -> Iterator[tuple[int, float]]:
        """Yield operands of an equation with the number for which its result is another one."""
        operands = list(map(self.flow.of, step.operands))
        match step.primitive:
            case "integer_pow" if target >= 0:
                yield operands[0], power(target, over(1.0, float(step.number("y", 1))))
            case "mul" | "dot_general" if operands[0] == operands[1]:
                yield operands[0], INVERSES["square"](target)
            case "mul" | "dot_general" if target == 0:
                yield from ((operand, 0.0) for operand in operands)
            case "select_n":
                yield from ((operand, target) for operand in operands[1:])
            case "clamp":
                yield operands[1], target
            case primitive if primitive in INVERSES:
                yield operands[0], INVERSES[primitive](target)
            case primitive if primitive in KEEPS:
                yield operands[0], over(target, _count(self.flow, step))
            case primitive if primitive in SIDES:
                for at, side in enumerate(SIDES[primitive]):
                    other = self.numbers[operands[1 - at]]
                    if other is not None:
                        yield from ((operands[at], number) for number in side(target, other))

    def _numbers(self, begin: Mapping[int, float | None]) -> Numbers:
        """Return the numbers of all values."""
        numbers: Numbers = dict(begin)
        for step in self.run:
            number = self.flow.of(step.results[0])
            operands = [numbers[self.flow.of(operand)] for operand in step.operands]
            result = _result(self.flow, step, operands)
            dtype = self.flow.value(number).dtype
            numbers[number] = None if result is None else rounded(result, dtype)
        return numbers

    def _is_steep(self, step: Step, numbers: Numbers) -> bool:
        operands = [numbers[self.flow.of(operand)] for operand in step.operands]
        known = [operand for operand in operands if operand is not None]
        result = numbers[self.flow.of(step.results[0])]
        return len(known) == len(operands) and is_steep(
            step.primitive, known, math.nan if result is None else result
        )

    def _reached(self, numbers: Numbers, case: int) -> set[int]:
        """Return the values that a case is made of, by what inner selections show."""
        reached = {case}
        for step in reversed(self.run):
            if self.flow.of(step.results[0]) in reached and not is_flat(self.flow, step):
                operands = list(map(self.flow.of, step.operands))
                index = numbers[operands[0]]
                if step.primitive == "select_n" and index is not None:
                    operands = [operands[1 + min(int(index), len(operands) - 2)]]
                reached.update(operands)
        return reached

    def _is_guarded(self, step: Step, numbers: Numbers) -> bool:
        """Whether the condition is there for what it hides, and all is fine with what it shows."""
        case = self.cases[int(numbers[self.predicate] or 0)]
        reached = self._reached(numbers, case)
        value = numbers[case]
        if value is not None and not math.isfinite(value):
            return False
        if any(
            self._is_steep(each, numbers)
            for each in self.run
            if self.flow.of(each.results[0]) in reached
        ):
            return False
        literals = {n: self.flow.literal(n) for n in set[int]().union(*self.comparisons)}
        compared = [numbers.get(n) or 0.0 for n in literals if literals[n] is None]
        # Where what is compared is infinite or NaN, the condition does not guard against that.
        if not all(map(math.isfinite, compared)):
            return False
        is_near_0 = all(
            any(0 < abs(literals[n] or 0.0) <= _SMALL for n in sides) for sides in self.comparisons
        )
        if is_near_0 and all(abs(number) > 1 for number in compared):
            return False
        # `x < width` is no guard against `width == 0`.
        divisor = self.origins.get(self.flow.of(step.operands[-1]), set())
        where = [sides for sides in self.comparisons if divisor & sides]
        varies = all(literals[n] is None for sides in where for n in sides)
        return not (step.primitive == "div" and len(divisor) == 1 and where and varies)

    def _said(self, step: Step, numbers: Numbers) -> Point:
        result = numbers[self.flow.of(step.results[0])] or 0.0
        is_infinite = not math.isnan(result) and step.primitive != "atan2"
        begin = [n for n in self.usual if self.flow.literal(n) is None]
        arguments = [n for n in begin if not self.flow.value(n).is_constant]
        is_certain = all(n in self.flow.inputs and self.flow.values[n].said for n in arguments)
        at = tuple((self.flow.values[n].said, numbers[n] or 0.0) for n in sorted(arguments))
        return Point(step, numbers[self.predicate] == 1, is_infinite, at if is_certain else ())


def _is_run(flow: Flow, step: Step) -> bool:
    """Whether an equation is one of those that are run."""
    if len(step.results) != 1 or flow.value(step.results[0]).dtype.startswith("complex"):
        return False
    if step.primitive in LOGICAL:
        return flow.value(step.results[0]).dtype == "bool"
    if step.primitive in PICKS:  # elements of other arrays may differ
        return flow.of(step.operands[0]) in flow.inputs
    return step.primitive in {*VALUES, *KEEPS, "select_n", "integer_pow", "dot_general"}


def _count(flow: Flow, step: Step) -> float:
    """Return how many equal elements a reduction adds up."""
    if step.primitive != "reduce_sum":
        return 1.0
    operand, result = flow.value(step.operands[0]), flow.value(step.results[0])
    return operand.elements / max(1, result.elements)


def _result(flow: Flow, step: Step, operands: list[float | None]) -> float | None:
    """Return the number that an equation computes, as far as that is known."""
    first = operands[0]
    match step.primitive:
        case "select_n":
            return None if first is None else operands[1 + min(int(first), len(operands) - 2)]
        case "mul" | "dot_general" if 0 in operands and None in operands:
            return 0.0
        case "and" if 0 in operands:
            return 0.0
        case "or" if 1 in operands:
            return 1.0
        case "integer_pow" if first is not None:
            return power(first, float(step.number("y", 1)))
        case primitive if first is not None and primitive in KEEPS | PICKS:
            return first * _count(flow, step)
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    if step.primitive == "dot_general":  # a positive multiple: its size does not matter
        return known[0] * known[1]
    return (VALUES.get(step.primitive) or LOGICAL[step.primitive])(*known)
