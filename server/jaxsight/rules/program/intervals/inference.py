"""The numbers of a program: what each of its values certainly is, loops included."""

from __future__ import annotations

import math

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals import arithmetic, floats, moves
from jaxsight.rules.program.intervals.interval import (
    TRANSFERS,
    Applied,
    Interval,
    limits,
    varies,
)
from jaxsight.rules.program.loops import Carry, LoopParts, loop_of
from jaxsight.text.parsing import literal_in
from jaxsight.wire.program import CONSTANT, LITERAL, Body, ProgramValue, Step

_ = arithmetic, floats, moves  # register what primitives make of intervals

_DEEPEST = 200
"""Equations above a value that are looked at, which recurse: of more, only the dtype is known."""
_SUMS_OF_DEVICES = frozenset({"psum", "psum_invariant", "reduce_scatter"})
COLLECTIVES = _SUMS_OF_DEVICES | {
    "pmax", "pmin", "pvary", "pcast", "all_gather", "all_gather_invariant", "all_to_all",
}  # fmt: skip
"""Primitives over one or more devices, whose results are each made of their own operand."""
_NEAR = 8
"""Equations from a carry to what it is made of: additions of a counter, and conversions."""


class Intervals:
    """The intervals of a program's numbers, computed as they are asked for."""

    def __init__(self, flow: Flow, exact: bool = True) -> None:
        """Look at a program.

        Args:
            flow: the program.
            exact: whether what is captured has the values that it has when the program runs.
        """
        self._flow = flow
        self._exact = exact
        self._known: dict[int, Interval] = {}
        self._inputs = flow.body_inputs
        self._depth = 0

    def of(self, number: int) -> Interval | None:
        """Return the interval of a value; `None` of one that is no integer."""
        return self.interval(number) if limits(self._flow.value(number).dtype) is not None else None

    def interval(self, number: int) -> Interval:
        """Return the interval of a value of any type; that of complex numbers has no end."""
        number = self._flow.of(number)
        if number in self._known:
            return self._known[number]
        dtype = self._flow.values[number].dtype
        widest = Interval.of_floats(*(limits(dtype) or (-math.inf, math.inf)))
        self._known[number] = widest  # of values that are made from themselves, and too deep ones
        if dtype.startswith("complex") or self._depth > _DEEPEST:
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
        transfer = TRANSFERS.get(step.primitive)
        if transfer is None:
            return None
        applied = Applied(step, self._flow, self.interval)
        bounds = floats.special(applied) if applied.after.is_inexact else None
        if bounds is not None:
            return bounds
        operands = [self.interval(number) for number in step.operands]
        try:
            return transfer(applied, *operands) if operands else None
        except OverflowError:  # a float has no such power, an integer is not infinite
            return None

    def _computed(self, number: int) -> Interval | None:
        value, step = self._flow.values[number], self._flow.producer(number)
        if value.origin == LITERAL:
            scalar = self._flow.literal(number) if value.is_inexact else None
            return _literal(value) if scalar is None else Interval.of_floats(scalar, scalar)
        if value.origin == CONSTANT:
            return _constant(value) if self._exact else None
        if step is None:
            return self._input(self._inputs[number], number) if number in self._inputs else None
        if 0 in value.shape:
            return None
        match step.primitive:
            case "iota":
                axis = step.number("dimension", None)
                return (
                    None if axis is None else Interval.of_affine(0, {axis: (1, value.shape[axis])})
                )
            case "argmax" | "argmin":
                axes, shape = step.numbers("axes"), self._flow.value(step.operands[0]).shape
                return Interval.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None
            case "unstack":
                return self._unstacked(step, number)
            case primitive if primitive in COLLECTIVES | {"sort"}:
                return self._own(step, number)
            case "split":
                return self.result(step)
            case _:
                return self.result(step) if len(step.results) == 1 else None

    def _own(self, step: Step, number: int) -> Interval:
        """Bound a result of several, each of which is made of its own operand."""
        operand = self.interval(step.operands[step.results.index(number)])
        if step.primitive not in _SUMS_OF_DEVICES:
            return operand.bounds_alone()
        return Interval.of_floats(
            operand.least if operand.least >= 0 else -math.inf,
            operand.most if operand.most <= 0 else math.inf,
        )

    def _unstacked(self, step: Step, number: int) -> Interval | None:
        stacked, index = self._flow.producer(step.operands[0]), step.results.index(number)
        if stacked is not None and stacked.primitive == "stack":
            same_axis = stacked.numbers("axis") == step.numbers("axis")
            if same_axis and len(stacked.operands) == len(step.results):
                return self.of(stacked.operands[index])
        return self.interval(step.operands[0]).some()

    def _input(self, step: Step, number: int) -> Interval | None:
        """Return the interval of an input of an equation's bodies."""
        if (loop := loop_of(self._flow, step)) is not None:
            return self._in_loop(step, loop, number)
        if step.primitive not in ("cond", "shard_map", "checkpoint", "remat", "remat2"):
            return None
        operands = step.operands[1:] if step.primitive == "cond" else step.operands
        for body in step.bodies:
            outer = dict(zip(self._flow.inputs_of(body), operands, strict=False)).get(number)
            if outer is not None:
                if step.primitive == "shard_map":
                    return self.interval(outer).some()  # a part on each device
                return self._sometimes(outer) if step.primitive == "cond" else self.interval(outer)
        return None

    def _sometimes(self, outer: int) -> Interval:
        """Bound the input of a branch, which may not run in the iteration that reaches a bound."""
        interval = self.interval(outer)
        return interval.some() if varies(interval) else interval

    def _in_loop(self, step: Step, loop: LoopParts, number: int) -> Interval | None:
        """Bound an input of a loop: captured, carried, or a row, whose first axis is the loop."""
        length = step.parameter("length")
        if loop.test is None and (not isinstance(length, int) or length < 1):
            return None
        if number in loop.captured:
            outer = loop.captured[number]
            return self.interval(outer) if loop.test is None else self._sometimes(outer)
        if (carry := next((c for c in loop.carries if c.inner == number), None)) is not None:
            start = self.interval(carry.outer)
            if isinstance(length, int):
                return self._carried(step.path, carry, start, length)
            return self._counted(step.path, loop.test, carry, start) if loop.test else None
        if number not in loop.rows or not isinstance(length, int):
            return None
        rows = self.interval(loop.rows[number])
        if rows.affine is None:
            return rows.bounds_alone()
        base, terms = rows.affine
        first = terms.get(0)
        inner = {
            axis - 1 if isinstance(axis, int) else axis: term
            for axis, term in terms.items()
            if axis != 0
        }
        if first is not None and step.parameter("reverse"):
            base, first = base + first[0] * (length - 1), (-first[0], first[1])
        return Interval.of_affine(base, inner | ({step.path: first} if first else {}))

    def _carried(self, path: str, carry: Carry, start: Interval, length: int) -> Interval | None:
        """Bound a value that a scan carries: unchanged, a counter, or bounded by its body."""
        added = self._added(carry)
        if added == 0 or length <= 1:
            return start
        if added is not None and start.affine is not None:
            base, terms = start.affine
            return Interval.of_affine(base, {**terms, path: (added, length)})
        after = self.interval(carry.output)
        return Interval(
            min(start.least, after.least), max(start.most, after.most), start.low, start.high
        )

    def _counted(self, path: str, test: Body, carry: Carry, start: Interval) -> Interval | None:
        """Bound a value that a `while` carries: unchanged, or with known ends as in `i < n`."""
        added = self._added(carry)
        if added == 0:
            return start.some()
        maker = self._flow.producer(test.outputs[0])
        if maker is None or added is None or start.one is None or len(maker.operands) != 2:
            return None
        compared, bound = self._flow.of(maker.operands[0]), self.interval(maker.operands[1])
        if compared != carry.tested or bound.one is None or maker.primitive not in ("lt", "le"):
            return None
        end = bound.one + (maker.primitive == "le")
        if added <= 0 or start.one >= end:
            return None
        return Interval.of_affine(start.one, {path: (added, math.ceil((end - start.one) / added))})

    def _added(self, carry: Carry) -> int | None:
        """Return what an iteration adds to a carried integer, if that is always the same."""
        total, output = 0, carry.output
        for _ in range(_NEAR):
            output = self._flow.of(output)
            if output == carry.inner:
                return total
            step = self._flow.producer(output)
            if step is None:
                return None
            if step.primitive in ("convert_element_type", "copy"):
                if self._flow.value(output).dtype != self._flow.value(step.operands[0]).dtype:
                    return None
                output = step.operands[0]
                continue
            if step.primitive not in ("add", "sub"):
                return None
            output, other = step.operands
            if step.primitive == "add" and self._flow.value(output).origin == LITERAL:
                output, other = other, output
            value = self._flow.value(other)
            amount = _literal(value) if value.origin == LITERAL else None
            if amount is None or amount.one is None:
                return None
            total += amount.one if step.primitive == "add" else -amount.one
        return None


def _literal(value: ProgramValue) -> Interval | None:
    try:
        number = literal_in(value.said)
    except ValueError:
        return None
    return Interval.listed([int(number)]) if isinstance(number, int) else None


def _constant(value: ProgramValue) -> Interval | None:
    """Return the interval of a captured array: all of it, or its least and greatest element."""
    if not value.integers:
        return None
    listed = Interval.listed(value.integers)
    return listed if len(value.integers) == value.elements else listed.bounds_alone()
