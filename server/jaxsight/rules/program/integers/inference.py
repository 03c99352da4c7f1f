"""The integers of a program: what each of its values certainly is, loops included."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.intervals import (
    LISTED,
    Interval,
    limits,
    picked,
    summed,
    varies,
)
from jaxsight.rules.program.integers.primitives import PRIMITIVES
from jaxsight.rules.program.steps import captured, elements, numbers, parameter
from jaxsight.wire.program import CONSTANT, LITERAL, Body, Step, Value

_DEEPEST = 200
"""Equations above a value that are looked at."""


class Intervals:
    """The intervals of a program's integers, computed as they are asked for."""

    def __init__(self, flow: Flow, exact: bool = True) -> None:
        self._flow = flow
        self._exact = exact
        self._known: dict[int, Interval | None] = {}
        self._depth = 0
        self._inputs: dict[int, Callable[[], Interval | None]] = {}
        for step in flow.steps.values():
            for body in step.bodies:
                self._inputs.update(self._of_body(step, body))

    def of(self, number: int) -> Interval | None:
        """Return the interval of a value; `None` of one that is no integer."""
        number = self._flow.of(number)
        if number in self._known:
            return self._known[number]
        widest = self._widest(number)
        self._known[number] = widest  # of values that are made from themselves, and too deep ones
        if widest is None or self._depth > _DEEPEST:
            return widest
        self._depth += 1
        try:
            computed = self._computed(number)
        finally:
            self._depth -= 1
        if computed is not None and widest.least <= computed.least <= computed.most <= widest.most:
            self._known[number] = computed
        return self._known[number]

    def result(self, step: Step) -> Interval | None:
        """Return what an equation computes before it is wrapped into the dtype of its result."""
        rule = PRIMITIVES.get(step.primitive)
        if rule is None or not step.operands:
            return None
        return rule(self, step)

    def shifted(self, interval: Interval, by: int) -> Interval:
        """Return known integers with one added to all."""
        return summed(interval, Interval.listed([by]), lambda a, b: a + b)

    def value(self, number: int) -> Value:
        """Return the value of a number."""
        return self._flow.value(number)

    def maker(self, number: int) -> Step | None:
        """Return the equation that makes a value."""
        return self._flow.made_by(number)

    def same(self, first: int, second: int) -> bool:
        """Whether two numbers are the same value."""
        return self._flow.of(first) == self._flow.of(second)

    def _widest(self, number: int) -> Interval | None:
        within = limits(self._flow.values[number].dtype)
        return Interval.between(*within) if within is not None else None

    def _computed(self, number: int) -> Interval | None:
        value, step = self._flow.values[number], self._flow.made_by(number)
        if value.origin == LITERAL:
            return _literal(value)
        if value.origin == CONSTANT:
            return _constant(value) if self._exact else None
        if step is None:
            return self._inputs[number]() if number in self._inputs else None
        if 0 in value.shape:
            return None
        if step.primitive == "iota":
            return _iota(step, value.shape)
        if step.bodies and step.primitive not in PRIMITIVES:
            return None
        if step.primitive == "unstack":
            return self._unstacked(step, number)
        return self.result(step) if len(step.results) == 1 else None

    def _unstacked(self, step: Step, number: int) -> Interval | None:
        stacked = self._flow.made_by(step.operands[0])
        if stacked is not None and stacked.primitive == "stack":
            same_axis = numbers(stacked, "axis") == numbers(step, "axis")
            if same_axis and len(stacked.operands) == len(step.results):
                return self.of(stacked.operands[step.results.index(number)])
        operand, shape = self.of(step.operands[0]), self.value(step.operands[0]).shape
        if operand is None:
            return None
        axis = numbers(step, "axis") or (0,)
        if operand.integers is not None and len(operand.integers) == math.prod(shape):
            indices: list[Sequence[int]] = [range(size) for size in shape]
            indices[axis[0]] = [step.results.index(number)]
            return Interval.listed(picked(operand.integers, shape, indices))
        return operand.some()

    def _of_body(
        self, step: Step, body: Body
    ) -> Iterator[tuple[int, Callable[[], Interval | None]]]:
        """Yield how to compute the inputs of a body."""
        match step.primitive:
            case "scan":
                yield from self._of_scan(step, body)
            case "while":
                yield from self._of_while(step, body)
            case "cond":
                for inner, outer in zip(
                    self._flow.inputs_of(body), step.operands[1:], strict=False
                ):
                    yield inner, self._sometimes(outer)
            case "checkpoint" | "remat" | "remat2":
                for inner, outer in zip(self._flow.inputs_of(body), step.operands, strict=False):
                    yield inner, self._outer(outer)
            case _:
                return

    def _sometimes(self, outer: int) -> Callable[[], Interval | None]:
        """Bound the input of a branch, which may not run in the iteration that reaches a bound."""

        def computed() -> Interval | None:
            interval = self.of(outer)
            return interval.some() if interval is not None and varies(interval) else interval

        return computed

    def _of_scan(
        self, step: Step, body: Body
    ) -> Iterator[tuple[int, Callable[[], Interval | None]]]:
        length = parameter(step, "length")
        constants = len(captured(step))
        count = carried(step)
        if not isinstance(length, int) or length < 1 or count is None:
            return
        if len(self._flow.inputs_of(body)) != len(step.operands):
            return
        for index, (inner, outer) in enumerate(
            zip(self._flow.inputs_of(body), step.operands, strict=True)
        ):
            if index < constants:
                yield inner, self._outer(outer)
            elif index < constants + count:
                output = body.outputs[index - constants]
                yield inner, self._carry(step.path, inner, outer, output, length)
            else:
                yield inner, self._row(step, outer, length)

    def _of_while(
        self, step: Step, body: Body
    ) -> Iterator[tuple[int, Callable[[], Interval | None]]]:
        of_condition, of_body = (
            sum(numbers(step, name)) for name in ("cond_nconsts", "body_nconsts")
        )
        start = of_condition + of_body
        inside = [body for body in step.bodies if body.name.startswith("body")]
        tests = [body for body in step.bodies if body.name.startswith("cond")]
        if len(inside) != 1 or len(tests) != 1:
            return
        if body is inside[0]:
            own, first = of_body, of_condition
        else:
            own, first = of_condition, 0
        for index, inner in enumerate(self._flow.inputs_of(body)):
            if index < own:
                yield inner, self._outer(step.operands[first + index], sometimes=True)
                continue
            slot = index - own
            outer = step.operands[start + slot]
            counted = self._counted(step, inside[0], tests[0], slot, outer, of_body)
            yield inner, counted if body is inside[0] else lambda: None

    def _outer(self, outer: int, sometimes: bool = False) -> Callable[[], Interval | None]:
        def computed() -> Interval | None:
            interval = self.of(outer)
            if interval is None:
                return None
            return self._sometimes(outer)() if sometimes else interval

        return computed

    def _row(self, step: Step, outer: int, length: int) -> Callable[[], Interval | None]:
        """Bound the rows that a scan reads: the first axis becomes the loop."""

        def computed() -> Interval | None:
            interval = self.of(outer)
            if interval is None:
                return None
            if interval.affine is None:
                return interval.bounds_alone()
            base, terms = interval.affine
            first = terms.get(0)
            inner_terms = {
                axis - 1 if isinstance(axis, int) else axis: term
                for axis, term in terms.items()
                if axis != 0
            }
            if first is not None and parameter(step, "reverse"):
                base, first = base + first[0] * (length - 1), (-first[0], first[1])
            return Interval.of_affine(
                base, {**inner_terms, **({step.path: first} if first else {})}
            )

        return computed

    def _carry(
        self, path: str, inner: int, outer: int, output: int, length: int
    ) -> Callable[[], Interval | None]:
        """Bound a value that a loop carries: unchanged, a counter, or bounded by its body."""

        def computed() -> Interval | None:
            start = self.of(outer)
            if start is None:
                return None
            added = self._added(inner, output)
            if added == 0 or length <= 1:
                return start
            if added is not None and start.affine is not None:
                base, terms = start.affine
                return Interval.of_affine(base, {**terms, path: (added, length)})
            after = self.of(output)
            if after is None:
                return None
            return Interval(
                min(start.least, after.least), max(start.most, after.most), start.low, start.high
            )

        return computed

    def _counted(
        self, step: Step, inside: Body, test: Body, slot: int, outer: int, of_body: int
    ) -> Callable[[], Interval | None]:
        """Bound a value that a `while` carries, exactly for `while i < n` with known bounds."""

        def computed() -> Interval | None:
            start = self.of(outer)
            if start is None or len(inside.outputs) <= slot:
                return None
            added = self._added(self._flow.inputs_of(inside)[of_body + slot], inside.outputs[slot])
            if added == 0:
                return start.some()
            times = self._times(step, test, slot, start.one, added)
            if times is None or start.one is None or added is None:
                return None
            return Interval.of_affine(start.one, {step.path: (added, times)})

        return computed

    def _times(
        self, step: Step, test: Body, slot: int, start: int | None, added: int | None
    ) -> int | None:
        """Return how often the body runs when its condition alone compares a counter."""
        maker = self._flow.made_by(test.outputs[0])
        of_condition = len(self._flow.inputs_of(test)) - len(step.results)
        if maker is None or start is None or added is None or len(maker.operands) != 2:
            return None
        if self._flow.of(maker.operands[0]) != self._flow.inputs_of(test)[of_condition + slot]:
            return None
        bound = self.of(maker.operands[1])
        if bound is None or bound.one is None:
            return None
        end = {"lt": bound.one, "le": bound.one + 1}.get(maker.primitive)
        if end is None or added <= 0 or start >= end:
            return None
        return math.ceil((end - start) / added)

    def _added(self, inner: int, output: int) -> int | None:
        """Return what an iteration adds to a carried integer, if that is always the same."""
        total = 0
        for _ in range(8):
            output = self._flow.of(output)
            if output == inner:
                return total
            step = self._flow.made_by(output)
            if step is None:
                return None
            if step.primitive in ("convert_element_type", "copy"):
                if self.value(output).dtype != self.value(step.operands[0]).dtype:
                    return None
                output = step.operands[0]
            elif step.primitive in ("add", "sub") and len(step.operands) == 2:
                operands = [self._flow.values[self._flow.of(operand)] for operand in step.operands]
                if operands[1].origin == LITERAL:
                    amount, output = _literal(operands[1]), step.operands[0]
                elif operands[0].origin == LITERAL and step.primitive == "add":
                    amount, output = _literal(operands[0]), step.operands[1]
                else:
                    return None
                if amount is None or amount.one is None:
                    return None
                total += amount.one if step.primitive == "add" else -amount.one
            else:
                return None
        return None


def carried(step: Step) -> int | None:
    """Return how many values a scan carries."""
    trees = parameter(step, "ft_in")  # from JAX 0.12 on: trees of constants, carry and rows
    if isinstance(trees, tuple) and len(trees) == 3 and isinstance(trees[1], tuple):
        return len(trees[1])
    count = parameter(step, "num_carry")
    if isinstance(count, int):
        return count
    return 0 if count is None and trees is None else None


def _iota(step: Step, shape: tuple[int, ...]) -> Interval | None:
    axis = numbers(step, "dimension")
    if not axis:
        return None
    if len(shape) == 1 and 1 < shape[0] <= LISTED:
        return replace(Interval.listed(range(shape[0])), affine=(0, {0: (1, shape[0])}))
    return Interval.of_affine(0, {axis[0]: (1, shape[axis[0]])})


def _literal(value: Value) -> Interval | None:
    try:
        number = ast.literal_eval(value.said)
    except (ValueError, SyntaxError):
        return None
    return Interval.listed([int(number)]) if isinstance(number, int) else None


def _constant(value: Value) -> Interval | None:
    """Return the interval of a captured array: all of it, or its least and greatest element."""
    if not value.integers:
        return None
    listed = Interval.listed(value.integers)
    if len(value.integers) == elements(value):
        return listed
    return listed.bounds_alone()
