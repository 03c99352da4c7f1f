"""The integers of a program: what each of its values certainly is, loops included."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers import arithmetic, moves, reductions
from jaxsight.rules.program.integers.applied import TRANSFERS, Applied
from jaxsight.rules.program.integers.intervals import LISTED, Interval, limits, picked, varies
from jaxsight.rules.program.steps import captured, elements, numbers, parameter
from jaxsight.wire.program import CONSTANT, LITERAL, Body, Step, Value

_ = arithmetic, moves, reductions  # register what primitives make of intervals

_DEEPEST = 200
"""Equations above a value that are looked at."""


class Intervals:
    """The intervals of a program's integers, computed as they are asked for."""

    def __init__(
        self,
        flow: Flow,
        exact: bool = True,
        given: Mapping[int, int] | None = None,
        computes: Collection[str] | None = None,
    ) -> None:
        """Look at a program.

        Args:
            flow: the program.
            exact: whether what is captured has the values that it has when the program runs.
            given: the integers of some values; without it, those of bodies are computed.
            computes: the primitives that are computed, by default all that are known.
        """
        self._flow = flow
        self._exact = exact
        self._known: dict[int, Interval | None] = {
            number: Interval.listed([integer]) for number, integer in (given or {}).items()
        }
        self._inputs = flow.body_inputs if given is None else {}
        self._computes = TRANSFERS.keys() if computes is None else computes
        self._depth = 0
        self.overflow: tuple[Step, int] | None = None
        """The first equation whose integer does not fit in its dtype, and that integer."""

    def of(self, number: int) -> Interval | None:
        """Return the interval of a value; `None` of one that is no integer."""
        number = self._flow.of(number)
        if number in self._known:
            return self._known[number]
        within = limits(self._flow.values[number].dtype)
        widest = Interval.between(*within) if within is not None else None
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
        elif computed is not None and computed.one is not None and self.overflow is None:
            step = self._flow.made_by(number)
            self.overflow = (step, computed.one) if step is not None else None
        return self._known[number]

    def result(self, step: Step) -> Interval | None:
        """Return what an equation computes before it is wrapped into the dtype of its result."""
        transfer = TRANSFERS.get(step.primitive)
        if transfer is None or step.primitive not in self._computes:
            return None
        operands = [self.of(number) for number in step.operands]
        if not operands or None in operands:
            return None
        return transfer(Applied(step, self._flow, self.of), *operands)

    def _computed(self, number: int) -> Interval | None:
        value, step = self._flow.values[number], self._flow.made_by(number)
        if value.origin == LITERAL:
            return _literal(value)
        if value.origin == CONSTANT:
            return _constant(value) if self._exact else None
        if step is None:
            return self._input(*self._inputs[number]) if number in self._inputs else None
        if 0 in value.shape:
            return None
        match step.primitive:
            case "iota":
                return _iota(step, value.shape)
            case "argmax" | "argmin":
                axes, shape = numbers(step, "axes"), self._flow.value(step.operands[0]).shape
                return Interval.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None
            case "unstack":
                return self._unstacked(step, number)
            case _:
                return self.result(step) if len(step.results) == 1 else None

    def _unstacked(self, step: Step, number: int) -> Interval | None:
        stacked, index = self._flow.made_by(step.operands[0]), step.results.index(number)
        if stacked is not None and stacked.primitive == "stack":
            same_axis = numbers(stacked, "axis") == numbers(step, "axis")
            if same_axis and len(stacked.operands) == len(step.results):
                return self.of(stacked.operands[index])
        operand, shape = self.of(step.operands[0]), self._flow.value(step.operands[0]).shape
        if operand is None:
            return None
        if operand.integers is not None and len(operand.integers) == math.prod(shape):
            indices: list[Sequence[int]] = [range(size) for size in shape]
            indices[next(iter(numbers(step, "axis")), 0)] = [index]
            return Interval.listed(picked(operand.integers, shape, indices))
        return operand.some()

    def _input(self, step: Step, body: Body, index: int) -> Interval | None:
        """Return the interval of an input of a body, by its position."""
        match step.primitive:
            case "scan":
                return self._in_scan(step, body, index)
            case "while":
                return self._in_while(step, body, index)
            case "cond" if index + 1 < len(step.operands):
                return self._sometimes(step.operands[index + 1])
            case "checkpoint" | "remat" | "remat2" if index < len(step.operands):
                return self.of(step.operands[index])
            case _:
                return None

    def _sometimes(self, outer: int) -> Interval | None:
        """Bound the input of a branch, which may not run in the iteration that reaches a bound."""
        interval = self.of(outer)
        return interval.some() if interval is not None and varies(interval) else interval

    def _in_scan(self, step: Step, body: Body, index: int) -> Interval | None:
        """Bound an input of a scan: captured, carried, or a row, whose first axis is the loop."""
        length, constants, count = parameter(step, "length"), len(captured(step)), carried(step)
        inputs = self._flow.inputs_of(body)
        if not isinstance(length, int) or length < 1 or count is None:
            return None
        if len(inputs) != len(step.operands):
            return None
        outer = self.of(step.operands[index])
        if outer is None or index < constants:
            return outer
        if index < constants + count:
            output = body.outputs[index - constants]
            return self._carried(step.path, inputs[index], outer, output, length)
        if outer.affine is None:
            return outer.bounds_alone()
        base, terms = outer.affine
        first = terms.get(0)
        inner = {
            axis - 1 if isinstance(axis, int) else axis: term
            for axis, term in terms.items()
            if axis != 0
        }
        if first is not None and parameter(step, "reverse"):
            base, first = base + first[0] * (length - 1), (-first[0], first[1])
        return Interval.of_affine(base, inner | ({step.path: first} if first else {}))

    def _carried(
        self, path: str, inner: int, start: Interval, output: int, length: int
    ) -> Interval | None:
        """Bound a value that a loop carries: unchanged, a counter, or bounded by its body."""
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

    def _in_while(self, step: Step, body: Body, index: int) -> Interval | None:
        """Bound an input of a `while`: captured, or carried.

        What is carried is known where it is unchanged, and exactly for `while i < n` with known
        bounds.
        """
        of_condition, of_body = (
            sum(numbers(step, name)) for name in ("cond_nconsts", "body_nconsts")
        )
        tests = [body for body in step.bodies if body.name.startswith("cond")]
        if len(tests) != 1 or len(step.bodies) != 2:
            return None
        is_test = body is tests[0]
        own, first = (of_condition, 0) if is_test else (of_body, of_condition)
        if index < own:
            return self._sometimes(step.operands[first + index])
        slot = index - own
        start = self.of(step.operands[of_condition + of_body + slot])
        if is_test or start is None or len(body.outputs) <= slot:
            return None
        added = self._added(self._flow.inputs_of(body)[index], body.outputs[slot])
        if added == 0:
            return start.some()
        times = self._times(step, tests[0], slot, start.one, added)
        if times is None or start.one is None or added is None:
            return None
        return Interval.of_affine(start.one, {step.path: (added, times)})

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
                if self._flow.value(output).dtype != self._flow.value(step.operands[0]).dtype:
                    return None
                output = step.operands[0]
            elif step.primitive in ("add", "sub") and len(step.operands) == 2:
                operands = [self._flow.value(operand) for operand in step.operands]
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
