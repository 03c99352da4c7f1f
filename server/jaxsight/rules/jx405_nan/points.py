"""Run the gradient of a selection at points, in search of one where a hidden case makes it NaN.

All arguments are arrays of one number each, so that most arrays of the program are, too, and one
number stands for each. What is not such an array, or is computed in ways that are not known here,
is a number of its own, within what is known of its bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.jx405_nan.scalars import (
    LOGICAL,
    NAN,
    PICKS_ANY,
    REDUCES,
    RUN,
    STEEP,
    applied,
    chosen,
    contracted,
)
from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import comparisons_behind, is_flat
from jaxsight.rules.program.rounding import rounded, rounder
from jaxsight.wire.primitives import COMPARISONS
from jaxsight.wire.program import LITERAL, Step

_USUAL = (1.0, 1.5, 0.75, 1.25, 1.75, 0.625)
"""Numbers of arguments that nothing is wrong with, one after the other: equal ones would cancel."""
_TRIED = (0.0, -1.0, 2.0, -2.0, 0.5, -0.5, 100.0, -100.0, 1e3, -1e3)
"""Numbers that are tried: most functions that are unsafe anywhere are at one of them, or where a
comparison changes. `exp` overflows at the last ones."""
_CONSTANTS = (1.0, -1.0, 0.25)
"""Numbers in place of captured arrays, whose values are not known: a point is needed for each."""
_EQUATIONS = 150
"""Equations before a selection that are run; what is computed by others is any number."""
_SHARE = 3
"""How many times as often a guard may show what it is to hide: for the half of some arguments."""
_SMALL = 1e-3
"""A condition on a number near 0 guards what is near 0, as a series does. It is no guard beyond 1:
a choice."""
_COUNTED = 200
"""Points that are counted in order to tell a guard from a condition on something else."""
_WORK, _ALL_WORK = 20_000, 60_000
"""Equations that are run for a selection and for all of a program, about 0.1 s: more are not fast
while typing."""


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
        self.work = _ALL_WORK
        """How many equations may still be run."""
        self.order = {path: index for index, path in enumerate(flow.steps)}
        self._operations: dict[str, _Operation] = {}
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
        if not cone.is_related():
            return None
        found = None
        for number in _CONSTANTS if cone.constants else _CONSTANTS[:1]:
            given = dict.fromkeys(cone.constants, number)
            found = cone.point(given)
            if found is None or not cone.is_guard(found, given):
                return None
        return found

    def operation(self, step: Step) -> _Operation:
        """Return how an equation is run."""
        if step.path not in self._operations:
            self._operations[step.path] = _Operation(self.flow, step)
        return self._operations[step.path]


class _Cone:
    """A selection, the equations that it is computed by, and the values that these begin with."""

    def __init__(self, gradients: Gradients, select: Step) -> None:
        self.gradients, self.flow, self.select = gradients, gradients.flow, select
        self.fixed: dict[int, float] = {}
        """Literals."""
        self.constants: list[int] = []
        """Captured arrays."""
        self.free: dict[int, list[float]] = {}
        """Arguments and values of unknown origin, each with the numbers to try, the usual one
        first.
        """
        self.is_whole = True
        """Whether all that the selection depends on is run."""
        run, leaves = self._run_and_leaves()
        self._begin(run, leaves)
        self.operations = list(map(gradients.operation, run))
        self.comparisons = [
            tuple(map(self.flow.of, step.operands))
            for step in comparisons_behind(self.flow, select.operands[0])
            if len(set(map(self.flow.of, step.operands))) > 1
        ]
        """What the condition compares, other than in order to ask whether it is finite."""
        self.compared = list(itertools.chain.from_iterable(self.comparisons))
        small = {number for number, value in self.fixed.items() if 0 < abs(value) <= _SMALL}
        is_near_0 = all(map(small.intersection, self.comparisons))
        self.near_0 = [n for n in self.compared if is_near_0 and n not in self.fixed]
        """Of these, what is compared with small numbers, if all is."""
        self.differentiable = gradients.differentiable & self.free.keys()
        self.origins = {number: {number} for number in self.free}
        """By value the arguments and values of unknown origin that it is computed from."""
        for each in self.operations:
            behind = (self.origins.get(number, set()) for number in each.operands)
            self.origins[each.result] = set[int]().union(*behind)

    def _run_and_leaves(self) -> tuple[list[Step], set[int]]:
        """Return the equations that are run, in order, and the values that they begin with.

        The elements of an array that is reduced have to be equal.
        """
        flow, order = self.flow, self.gradients.order
        makers, leaves = dict[str, Step](), set[int]()
        waiting = list(dict.fromkeys(map(flow.of, self.select.operands)))
        for number in waiting:
            step = flow.producer(number)
            if step is None or not _is_run(flow, step) or len(makers) == _EQUATIONS:
                leaves.add(number)
            else:
                makers[step.path] = step
                operands = dict.fromkeys(map(flow.of, step.operands))
                waiting += [operand for operand in operands if operand not in waiting]
        even = {
            number
            for number in leaves
            if not (value := flow.value(number)).shape
            or number in flow.inputs
            or value.origin == LITERAL
        }
        run = []
        for step in sorted(makers.values(), key=lambda step: order[step.path]):
            count = 1 if step.primitive in PICKS_ANY else None
            result = flow.of(step.results[0])
            if even.issuperset(map(flow.of, step.operands[:count])):
                even.add(result)
            elif step.primitive in REDUCES | PICKS_ANY:
                leaves.add(result)
                continue
            run.append(step)
        return run, leaves

    def _begin(self, run: Sequence[Step], leaves: set[int]) -> None:
        """Decide which numbers the values begin with."""
        flow = self.flow
        read = {flow.of(operand) for step in (*run, self.select) for operand in step.operands}
        literals = {
            flow.literal(operand)
            for step in run
            if step.primitive in COMPARISONS | {"max", "min", "clamp"}
            for operand in step.operands
        }
        compared = [n for n in literals if n is not None and math.isfinite(n) and n != 0]
        compared = sorted(compared, key=abs)[:4]
        for number in sorted(leaves & read):
            scalar = flow.literal(number)
            value, maker = flow.value(number), flow.producer(number)
            varies = number in flow.inputs or number in self.gradients.differentiable
            is_counter = maker is not None and maker.primitive == "iota"
            if scalar is not None:
                self.fixed[number] = scalar
            elif value.is_constant and not (value.integers or value.numbers):
                self.constants.append(number)
            elif varies or value.is_constant or value.dtype == "bool" or is_counter:
                self.free[number] = self._numbers(number, compared)
            else:  # as a number drawn, or read from a table
                low, high = self.gradients.known.bounds(number)
                usual = _USUAL[len(self.fixed) % len(_USUAL)]
                self.fixed[number] = rounded(min(max(usual, low), high), value.dtype)
                self.is_whole = False

    def is_related(self) -> bool:
        """Whether what the condition compares and what the cases are made of have a common origin.

        A condition on something else guards nothing.
        """
        condition, *cases = (self.origins.get(self.flow.of(n), set()) for n in self.select.operands)
        is_unsafe = any(run.is_steep for run in self.operations) or any(
            math.isnan(number) for tried in self.free.values() for number in tried
        )
        return is_unsafe and bool(self.differentiable) and any(condition & case for case in cases)

    def _numbers(self, number: int, compared: Sequence[float]) -> list[float]:
        """Return the numbers to try for a value: the usual one, then others within its bounds."""
        flow, known = self.flow, self.gradients.known
        value = flow.value(number)
        if value.dtype == "bool":
            return [1.0, 0.0]
        if listed := value.integers or value.numbers:
            return [float(n) for n in sorted(set(listed))[:8]]
        near = [c * factor for c in compared for factor in (1.0, 2.0, 0.5)]
        far = _TRIED[6:] if number in flow.inputs else ()  # others may have bounds not known here
        usual = _USUAL[len(self.free) % len(_USUAL)]
        tried = list(dict.fromkeys([usual, _USUAL[0], *_TRIED[:6], *near, *far]))
        if not value.is_inexact:
            tried = [float(n) for n in dict.fromkeys(map(math.ceil, tried))]
        elif any(
            user.primitive == "is_finite"
            or (user.primitive == "ne" and len(set(map(flow.of, user.operands))) == 1)
            for user in flow.used_by(number)
        ):
            tried.append(NAN)  # the program asks for it
        if number not in flow.inputs:
            low, high = known.bounds(number)
            positive = known.is_positive(number)
            tried = [n for n in tried if low <= n <= high and not (positive and n <= 0)]
        return [rounded(n, value.dtype) for n in tried] or [_USUAL[0]]

    def point(self, given: dict[int, float]) -> Point | None:
        """Return the most usual point where a hidden case makes the gradient NaN."""
        points = (self._point(values) for values in self._tried(given))
        return next((point for point in points if point is not None), None)

    def is_guard(self, point: Point, given: dict[int, float]) -> bool:
        """Whether what is not finite is hidden about as often as it is shown, or more often.

        A condition on something else shows it at most points.
        """
        cause = self.gradients.operation(point.cause)
        predicate, *cases = map(self.flow.of, self.select.operands)
        hidden = shown = 0
        for values in itertools.islice(self._tried(given), _COUNTED):
            self._run(values)
            operands, result = cause.numbers(values)
            is_finite = math.isfinite(result) and not cause.is_steep_at(operands, result)
            if is_finite or not all(map(math.isfinite, operands)):
                continue
            index = chosen(values[predicate], len(cases))
            if self._reaches(values, cases[index], cause.result):
                shown += 1
            elif index == int(point.holds):
                hidden += 1
        return not shown or _SHARE * hidden > shown

    def _reaches(self, values: dict[int, float], case: int, number: int) -> bool:
        """Whether a case is computed from a value by what inner selections show."""
        reached = {case}
        for run in reversed(self.operations):
            if run.result in reached:
                first, *others = run.operands
                if run.step.primitive == "select_n":
                    reached.add(others[chosen(values[first], len(others))])
                else:
                    reached.update(run.operands)
        return number in reached

    def _tried(self, given: dict[int, float]) -> Iterator[dict[int, float]]:
        """Yield the arguments and literals of points, the most usual ones first."""
        names = list(self.free)
        usual = {number: tried[0] for number, tried in self.free.items()}
        each = len(self.operations) + 1
        for changed in itertools.islice(self._changes(names), 1 + _WORK // each):
            if self.gradients.work < each:
                return
            self.gradients.work -= each
            yield {**self.fixed, **given, **usual, **dict(changed)}

    def _run(self, values: dict[int, float]) -> bool:
        """Add the results of all equations; return whether one of them may have odd slopes."""
        is_odd = not all(map(math.isfinite, values.values()))
        for run in self.operations:
            operands = [values[number] for number in run.operands]
            values[run.result] = result = run.round(run.compute(*operands))
            is_odd |= not math.isfinite(result)
            is_odd = is_odd or (run.is_steep and run.is_steep_at(operands, result))
        return is_odd

    def _changes(self, names: Sequence[int]) -> Iterator[tuple[tuple[int, float], ...]]:
        """Yield how a point differs from the usual one: nowhere, in one value, in two."""
        for count in range(min(3, len(names)) + 1):
            for changed in itertools.combinations(names, count):
                for others in itertools.product(*(self.free[name][1:] for name in changed)):
                    yield tuple(zip(changed, others, strict=True))

    def _point(self, values: dict[int, float]) -> Point | None:
        """Return the point if the hidden case makes the gradient NaN, and nothing else does.

        Args:
            values: the arguments and literals; results are added.
        """
        flow = self.flow
        is_odd = self._run(values)
        predicate, *cases = map(flow.of, self.select.operands)
        index = int(values[predicate])
        if not is_odd or index >= len(cases) or not math.isfinite(values[cases[index]]):
            return None
        # Where what is compared is infinite or NaN, the condition does not guard against that.
        if not all(math.isfinite(values.get(number, 0.0)) for number in self.compared):
            return None
        if self.near_0 and all(abs(values.get(number, 0.0)) > 1 for number in self.near_0):
            return None
        hidden = [case for i, case in enumerate(cases) if i != index and case != cases[index]]
        zeros, cause, is_infinite = self._cotangents(values, dict.fromkeys(hidden, 0.0))
        given = (number for number in self.differentiable if not math.isnan(values[number]))
        if cause is None or not any(math.isnan(zeros.get(number, 0.0)) for number in given):
            return None
        shown, _, _ = self._cotangents(values, {cases[index]: 1.0})
        if not all(map(math.isfinite, shown.values())):
            return None
        about = self.origins.get(predicate, set())
        if not any(about & self.origins.get(flow.of(n), set()) for n in cause.operands):
            return None
        if cause.primitive == "div" and self._is_a_scale(flow.of(cause.operands[1])):
            return None
        captured = [number for number in self.free if flow.values[number].is_constant]
        arguments = [number for number in self.free if number not in captured]
        # Elements of one captured array meet any argument, those of two may not meet one another.
        is_certain = (
            self.is_whole
            and len(captured) <= 1
            and all(number in flow.inputs and flow.values[number].said for number in arguments)
        )
        at = tuple((flow.values[number].said, values[number]) for number in arguments)
        return Point(cause, index == 1, is_infinite, at if is_certain else ())

    def _is_a_scale(self, divisor: int) -> bool:
        """Whether a divisor depends on one argument alone, which is compared with what varies.

        `x < width` is no guard against `width == 0`.
        """
        origins = self.origins.get(divisor, set())
        where = [numbers for numbers in self.comparisons if origins.intersection(numbers)]
        varies = all(self.fixed.keys().isdisjoint(numbers) for numbers in where)
        return len(origins) == 1 and bool(where) and varies

    def _cotangents(
        self, values: dict[int, float], start: dict[int, float]
    ) -> tuple[dict[int, float], Step | None, bool]:
        """Return the cotangents of all values, from those of the cases.

        Return also the first equation of the program that is not finite, and whether it is
        infinite.
        """
        found, cause, is_infinite = dict(start), None, False
        for run in reversed(self.operations):
            cotangent = found.get(run.result)
            if cotangent is None or run.is_flat:
                continue
            operands, result = run.numbers(values)
            factors = run.slopes(*operands, result)
            for number, factor, flows in zip(run.operands, factors, run.flows, strict=False):
                if factor is None or not flows:
                    continue
                # A selection gives zero to the case that it does not choose, even in place of NaN.
                is_hidden = run.step.primitive == "select_n" and not factor
                part = 0.0 if is_hidden else cotangent * factor
                found[number] = found.get(number, 0.0) + part
                is_first = cause is None and math.isnan(part)
                is_finite = math.isfinite(factor) and math.isfinite(result)
                if is_first or (all(map(math.isfinite, operands)) and not is_finite):
                    cause, is_infinite = run.step, not math.isnan(factor)
        return found, cause, is_infinite


class _Operation:
    """An equation that is run."""

    def __init__(self, flow: Flow, step: Step) -> None:
        self.step = step
        self.operands, self.result = tuple(map(flow.of, step.operands)), flow.of(step.results[0])
        values, result = list(map(flow.value, self.operands)), flow.value(self.result)
        count = values[0].elements // max(1, result.elements)
        if step.primitive == "dot_general":
            count = contracted(step, values[0].shape)
        self.compute, self.slopes = applied(step, count, whole=not values[-1].is_inexact)
        self.round = rounder(result.dtype)
        self.flows = [value.is_inexact and value.origin != LITERAL for value in values]
        """Which operands get cotangents: inexact ones that are no literals."""
        self.is_flat = is_flat(flow, step)
        """Whether none does."""
        self.is_steep = step.primitive in STEEP
        """Whether a slope may be infinite where the operands are finite."""
        if step.path in flow.ruled:  # whoever writes a rule takes care of its slopes
            self.slopes, self.is_steep = lambda *rest: [1.0] * (len(rest) - 1), False

    def numbers(self, values: dict[int, float]) -> tuple[list[float], float]:
        """Return the operands and the result."""
        return [values[number] for number in self.operands], values[self.result]

    def is_steep_at(self, operands: Sequence[float], result: float) -> bool:
        """Whether a slope is infinite or NaN."""
        factors = self.slopes(*operands, result)
        return not all(factor is None or math.isfinite(factor) for factor in factors)


def _is_run(flow: Flow, step: Step) -> bool:
    """Whether an equation is one of those that are run."""
    if len(step.results) != 1 or flow.value(step.results[0]).dtype.startswith("complex"):
        return False
    if step.primitive in LOGICAL:
        return flow.value(step.results[0]).dtype == "bool"
    return step.primitive in RUN and not step.bodies
