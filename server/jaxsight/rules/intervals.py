"""What integers of a program certainly are: bounds of all elements, and which are reached.

Sound: nothing is claimed that an execution of the function could disprove. A claim is about all
elements of a value in all iterations of the loops around it. Values that are affine in the indices
of their axes and in loop counters (`jnp.arange(n) * 2 + i`) keep that, so that windows such as
`jnp.arange(n)[:, None] + jnp.arange(k)` are known exactly.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from jaxsight.rules.reading import Flow, captured, elements, numbers, parameter
from jaxsight.tracer.program import CONSTANT, LITERAL, Body, Step, Value

Axis = int | str
"""What an affine value varies with: an axis of the array, or a loop by its path."""
Terms = Mapping[Axis, tuple[int, int]]
"""By what it varies with: how much each step adds, and how many steps there are (at least 2)."""

_INTEGER = re.compile(r"(u?)int(\d+)")
_LISTED = 64
"""Elements of arrays that are computed one by one."""
_DEEPEST = 200
"""Equations above a value that are looked at."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of the integers of one value."""

    least: int
    """No element is below."""
    most: int
    """No element is above."""
    low: int
    """Some element is this or below."""
    high: int
    """Some element is this or above."""
    affine: tuple[int, Terms] | None = None
    """The first element, and what adds to it."""
    items: tuple[int, ...] | None = None
    """All elements of a small array, row by row; the same in all iterations."""
    ends: tuple[int, int] | None = None
    """The first element in the first iteration, and the last element in the last iteration, of
    what is computed elementwise from affine values.
    """

    @staticmethod
    def between(least: int, most: int) -> Range:
        """Return integers of which only the bounds are known."""
        return Range(least, most, most, least)

    @staticmethod
    def listed(items: Iterable[int]) -> Range:
        """Return known integers."""
        row = tuple(items)
        least, most = min(row), max(row)
        affine: tuple[int, Terms] | None = (least, {}) if least == most else None
        return Range(least, most, least, most, affine, row if len(row) <= _LISTED else None)

    @staticmethod
    def of_affine(base: int, terms: Terms) -> Range:
        """Return the integers of an affine value."""
        terms = {axis: term for axis, term in terms.items() if term[0] and term[1] > 1}
        ends = [step * (count - 1) for step, count in terms.values()]
        least = base + sum(end for end in ends if end < 0)
        most = base + sum(end for end in ends if end > 0)
        return Range(least, most, least, most, (base, terms))

    @property
    def one(self) -> int | None:
        """The integer that all elements are, where it is one."""
        return self.least if self.least == self.most else None

    @property
    def corners(self) -> tuple[int, int] | None:
        """The first and the last element, where both are known."""
        if self.affine is not None:
            base, terms = self.affine
            return base, base + sum(step * (count - 1) for step, count in terms.values())
        if self.items is not None:
            return self.items[0], self.items[-1]
        return self.ends

    def some(self) -> Range:
        """Return what is known of any selection of the elements."""
        if self.one is not None:
            return Range.listed([self.least])
        return Range.between(self.least, self.most)

    def bounds_alone(self) -> Range:
        """Return the same bounds, without where elements are."""
        return replace(self, affine=None, items=None, ends=None)


def limits(dtype: str) -> tuple[int, int] | None:
    """Return the least and greatest integer of a dtype; `None` of one that is no integer."""
    if dtype == "bool":
        return 0, 1
    found = _INTEGER.fullmatch(dtype)
    if found is None:
        return None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Ranges:
    """The ranges of a program's integers, computed as they are asked for."""

    def __init__(self, flow: Flow, exact: bool = True) -> None:
        self._flow = flow
        self._exact = exact
        self._known: dict[int, Range | None] = {}
        self._depth = 0
        self._inputs: dict[int, Callable[[], Range | None]] = {}
        for step in flow.steps.values():
            for body in step.bodies:
                self._inputs.update(self._of_body(step, body))

    def of(self, number: int) -> Range | None:
        """Return the range of a value; `None` of one that is no integer."""
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

    def result(self, step: Step) -> Range | None:
        """Return what an equation computes before it is wrapped into the dtype of its result."""
        rule = _RULES.get(step.primitive)
        if rule is None or not step.operands:
            return None
        return rule(self, step)

    def shifted(self, known: Range, by: int) -> Range:
        """Return known integers with one added to all."""
        return _sum(known, Range.listed([by]), lambda a, b: a + b)

    def value(self, number: int) -> Value:
        """Return the value of a number."""
        return self._flow.value(number)

    def maker(self, number: int) -> Step | None:
        """Return the equation that makes a value."""
        return self._flow.made_by(number)

    def same(self, one: int, other: int) -> bool:
        """Whether two numbers are the same value."""
        return self._flow.of(one) == self._flow.of(other)

    def _widest(self, number: int) -> Range | None:
        within = limits(self._flow.values[number].dtype)
        return Range.between(*within) if within is not None else None

    def _computed(self, number: int) -> Range | None:
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
            axis, count = numbers(step, "dimension"), value.shape
            if not axis:
                return None
            if len(count) == 1 and 1 < count[0] <= _LISTED:
                return replace(Range.listed(range(count[0])), affine=(0, {0: (1, count[0])}))
            return Range.of_affine(0, {axis[0]: (1, count[axis[0]])})
        if step.bodies and step.primitive not in _RULES:
            return None
        if step.primitive == "unstack":
            stacked = self._flow.made_by(step.operands[0])
            if stacked is not None and stacked.primitive == "stack":
                same_axis = numbers(stacked, "axis") == numbers(step, "axis")
                if same_axis and len(stacked.operands) == len(step.results):
                    return self.of(stacked.operands[step.results.index(number)])
            known, shape = self.of(step.operands[0]), self.value(step.operands[0]).shape
            if known is None:
                return None
            axis = numbers(step, "axis") or (0,)
            if known.items is not None and len(known.items) == math.prod(shape):
                places: list[Sequence[int]] = [range(size) for size in shape]
                places[axis[0]] = [step.results.index(number)]
                return Range.listed(_picked(known.items, shape, places))
            return known.some()
        if len(step.results) != 1:
            return None
        return self.result(step)

    def _of_body(self, step: Step, body: Body) -> Iterator[tuple[int, Callable[[], Range | None]]]:
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

    def _sometimes(self, outer: int) -> Callable[[], Range | None]:
        """A branch may not run in the iteration that reaches a bound."""

        def computed() -> Range | None:
            known = self.of(outer)
            return known.some() if known is not None and _varies(known) else known

        return computed

    def _of_scan(self, step: Step, body: Body) -> Iterator[tuple[int, Callable[[], Range | None]]]:
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
                result = body.outputs[index - constants]
                yield inner, self._carry(step.path, inner, outer, result, length)
            else:
                yield inner, self._row(step, outer, length)

    def _of_while(self, step: Step, body: Body) -> Iterator[tuple[int, Callable[[], Range | None]]]:
        of_condition, of_body = (
            sum(numbers(step, name)) for name in ("cond_nconsts", "body_nconsts")
        )
        start = of_condition + of_body
        inside = [each for each in step.bodies if each.name.startswith("body")]
        tests = [each for each in step.bodies if each.name.startswith("cond")]
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

    def _outer(self, outer: int, sometimes: bool = False) -> Callable[[], Range | None]:
        def computed() -> Range | None:
            known = self.of(outer)
            if known is None:
                return None
            return self._sometimes(outer)() if sometimes else known

        return computed

    def _row(self, step: Step, outer: int, length: int) -> Callable[[], Range | None]:
        """The rows that a scan reads: the first axis becomes the loop."""

        def computed() -> Range | None:
            known = self.of(outer)
            if known is None:
                return None
            if known.affine is None:
                return known.bounds_alone()
            base, terms = known.affine
            first = terms.get(0)
            rest = {
                axis - 1 if isinstance(axis, int) else axis: term
                for axis, term in terms.items()
                if axis != 0
            }
            if first is not None and parameter(step, "reverse"):
                base, first = base + first[0] * (length - 1), (-first[0], first[1])
            return Range.of_affine(base, {**rest, **({step.path: first} if first else {})})

        return computed

    def _carry(
        self, path: str, inner: int, outer: int, result: int, length: int
    ) -> Callable[[], Range | None]:
        """What a loop carries: unchanged, a counter, or what its body bounds."""

        def computed() -> Range | None:
            start = self.of(outer)
            if start is None:
                return None
            added = self._added(inner, result)
            if added == 0 or length <= 1:
                return start
            if added is not None and start.affine is not None:
                base, terms = start.affine
                return Range.of_affine(base, {**terms, path: (added, length)})
            after = self.of(result)
            if after is None:
                return None
            return Range(
                min(start.least, after.least), max(start.most, after.most), start.low, start.high
            )

        return computed

    def _counted(
        self, step: Step, inside: Body, test: Body, slot: int, outer: int, of_body: int
    ) -> Callable[[], Range | None]:
        """What a `while` carries: exact for `while i < n` with known bounds."""

        def computed() -> Range | None:
            start = self.of(outer)
            if start is None or len(inside.outputs) <= slot:
                return None
            added = self._added(self._flow.inputs_of(inside)[of_body + slot], inside.outputs[slot])
            if added == 0:
                return start.some()
            times = self._times(step, test, slot, start.one, added)
            if times is None or start.one is None or added is None:
                return None
            return Range.of_affine(start.one, {step.path: (added, times)})

        return computed

    def _times(
        self, step: Step, test: Body, slot: int, start: int | None, added: int | None
    ) -> int | None:
        """Return how often the body runs when its condition alone compares a counter."""
        made = self._flow.made_by(test.outputs[0])
        of_condition = len(self._flow.inputs_of(test)) - len(step.results)
        if made is None or start is None or added is None or len(made.operands) != 2:
            return None
        if self._flow.of(made.operands[0]) != self._flow.inputs_of(test)[of_condition + slot]:
            return None
        bound = self.of(made.operands[1])
        if bound is None or bound.one is None:
            return None
        end = {"lt": bound.one, "le": bound.one + 1}.get(made.primitive)
        if end is None or added <= 0 or start >= end:
            return None
        return math.ceil((end - start) / added)

    def _added(self, inner: int, result: int) -> int | None:
        """Return what an iteration adds to a carried integer, if that is always the same."""
        total = 0
        for _ in range(8):
            result = self._flow.of(result)
            if result == inner:
                return total
            step = self._flow.made_by(result)
            if step is None:
                return None
            if step.primitive in ("convert_element_type", "copy"):
                if self.value(result).dtype != self.value(step.operands[0]).dtype:
                    return None
                result = step.operands[0]
            elif step.primitive in ("add", "sub") and len(step.operands) == 2:
                known = [self._flow.values[self._flow.of(each)] for each in step.operands]
                if known[1].origin == LITERAL:
                    amount, result = _literal(known[1]), step.operands[0]
                elif known[0].origin == LITERAL and step.primitive == "add":
                    amount, result = _literal(known[0]), step.operands[1]
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
    found = parameter(step, "num_carry")
    if isinstance(found, int):
        return found
    return 0 if found is None and trees is None else None


def _literal(value: Value) -> Range | None:
    try:
        found = ast.literal_eval(value.said)
    except (ValueError, SyntaxError):
        return None
    return Range.listed([int(found)]) if isinstance(found, int) else None


def _constant(value: Value) -> Range | None:
    """Return the range of a captured array: all of it, or its least and greatest element."""
    if not value.integers:
        return None
    known = Range.listed(value.integers)
    if len(value.integers) == elements(value):
        return known
    return known.bounds_alone()


def _add(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else _sum(*pair, lambda a, b: a + b)


def _sub(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if ranges.same(*step.operands):
        return Range.listed([0])
    return _sum(pair[0], _negative(pair[1]), lambda a, b: a + b)


def _neg(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else _negative(known)


def _negative(known: Range) -> Range:
    affine = None
    if known.affine is not None:
        base, terms = known.affine
        affine = -base, {axis: (-by, count) for axis, (by, count) in terms.items()}
    items = None if known.items is None else tuple(-item for item in known.items)
    return Range(-known.most, -known.least, -known.high, -known.low, affine, items)


def _sum(a: Range, b: Range, each: Callable[[int, int], int]) -> Range:
    if a.affine is not None and b.affine is not None:
        terms = dict(a.affine[1])
        for axis, (by, count) in b.affine[1].items():
            terms[axis] = (terms.get(axis, (0, count))[0] + by, count)
        exact = Range.of_affine(a.affine[0] + b.affine[0], terms)
        return replace(exact, items=_paired(a, b, each))
    if (items := _paired(a, b, each)) is not None:
        return Range.listed(items)
    known = Range(
        a.least + b.least,
        a.most + b.most,
        min(a.low + b.most, b.low + a.most),
        max(a.high + b.least, b.high + a.least),
    )
    return _with_ends(known, a, b, each)


def _with_ends(known: Range, a: Range, b: Range, each: Callable[[int, int], int]) -> Range:
    """Return a range with what the first and last elements of two values give."""
    if a.corners is None or b.corners is None:
        return known
    first, last = (each(x, y) for x, y in zip(a.corners, b.corners, strict=True))
    low, high = min(known.low, first, last), max(known.high, first, last)
    return Range(known.least, known.most, low, high, ends=(first, last))


def _paired(a: Range, b: Range, each: Callable[[int, int], int]) -> tuple[int, ...] | None:
    """Return what elements of two small arrays give, of which one may be a scalar."""
    if a.items is None or b.items is None:
        return None
    if len(a.items) == len(b.items):
        return tuple(map(each, a.items, b.items))
    if len(a.items) == 1 or len(b.items) == 1:
        return tuple(each(one, other) for one, other in product(a.items, b.items))
    return None


def _mul(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if ranges.same(*step.operands):
        return _power(pair[0], 2)
    a, b = pair
    for one, other in ((a, b), (b, a)):
        if other.one is not None and one.affine is not None:
            base, terms = one.affine
            scaled = {axis: (by * other.one, count) for axis, (by, count) in terms.items()}
            exact = Range.of_affine(base * other.one, scaled)
            return replace(exact, items=_paired(a, b, lambda x, y: x * y))
    if (items := _paired(a, b, lambda x, y: x * y)) is not None:
        return Range.listed(items)
    corners = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
    least, most = min(corners), max(corners)
    low, high = _reached(a, b) or (most, least)
    return _with_ends(Range(least, most, low, high), a, b, operator.mul)


def _reached(a: Range, b: Range) -> tuple[int, int] | None:
    """Return what some product of two values is at most, and what some is at least."""
    if a.affine is not None and b.affine is not None:
        counts = {axis: count for axis, (_, count) in (*a.affine[1].items(), *b.affine[1].items())}
        if len(counts) > 4:
            return None
        products = [
            _at(a.affine, at) * _at(b.affine, at)
            for ends in product((0, 1), repeat=len(counts))
            for at in [
                {axis: end * (n - 1) for (axis, n), end in zip(counts.items(), ends, strict=True)}
            ]
        ]
        return min(products), max(products)
    factor, known = (a.one, b) if a.one is not None else (b.one, a)
    if factor is None:
        return None
    ends = factor * known.low, factor * known.high
    return ends if factor >= 0 else ends[::-1]


def _at(affine: tuple[int, Terms], at: Mapping[Axis, int]) -> int:
    return affine[0] + sum(by * at[axis] for axis, (by, _) in affine[1].items())


def _integer_pow(ranges: Ranges, step: Step) -> Range | None:
    known, exponent = ranges.of(step.operands[0]), parameter(step, "y")
    if known is None or not isinstance(exponent, int) or not 0 <= exponent <= 64:
        return None
    return _power(known, exponent)


def _power(known: Range, exponent: int) -> Range:
    if known.items is not None:
        return Range.listed(item**exponent for item in known.items)
    if known.one is not None:
        return Range.listed([known.one**exponent])
    if exponent % 2 or known.least >= 0:
        return _ends(known, lambda number: number**exponent)
    ends = (known.least**exponent, known.most**exponent)
    reached = max(max(known.high, 0) ** exponent, min(known.low, 0) ** exponent)
    return Range(0, max(ends), max(ends), reached)


def _shift_left(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or not 0 <= pair[1].least <= pair[1].most <= 64 or pair[0].least < 0:
        return None
    a, b = pair
    if (items := _paired(a, b, lambda x, y: x << y)) is not None:
        return Range.listed(items)
    return Range.between(a.least << b.least, a.most << b.most)


def _shift_right(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least < 0 or pair[1].most > 64 or pair[0].least < 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return _monotone(a, lambda number: number >> by)
    if (items := _paired(a, b, lambda x, y: x >> y)) is not None:
        return Range.listed(items)
    return Range.between(a.least >> b.most, a.most >> b.least)


def _and(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    a, b = pair
    if (items := _paired(a, b, lambda x, y: x & y)) is not None:
        return Range.listed(items)
    if 0 in (a.one, b.one):
        return Range.listed([0])
    if a.least >= 0 or b.least >= 0:
        return Range.between(0, min(known.most for known in pair if known.least >= 0))
    return None


def _or(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None:
        return None
    if (items := _paired(*pair, lambda x, y: x | y)) is not None:
        return Range.listed(items)
    if ranges.value(step.results[0]).dtype == "bool" and 1 in (pair[0].one, pair[1].one):
        return Range.listed([1])
    return None


def _not(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or ranges.value(step.results[0]).dtype != "bool":
        return None
    return _monotone(_negative(known), lambda number: number + 1)


def _max(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else _greater(*pair)


def _greater(a: Range, b: Range) -> Range:
    if (items := _paired(a, b, max)) is not None:
        return Range.listed(items)
    if a.least >= b.most or b.least >= a.most:
        return a if a.least >= b.most else b
    return Range(
        max(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(a.high, b.high),
    )


def _min(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    return None if pair is None else _less(*pair)


def _less(a: Range, b: Range) -> Range:
    return _negative(_greater(_negative(a), _negative(b)))


def _clamp(ranges: Ranges, step: Step) -> Range | None:
    low, number, high = (ranges.of(each) for each in step.operands)
    if low is None or number is None or high is None:
        return None
    return _less(_greater(number, low), high)


def _div(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if b.one is not None:
        by = b.one
        return _monotone(a, lambda number: _truncated(number, by))
    bound = max(abs(a.least), abs(a.most))
    return Range.between(0 if a.least >= 0 else -bound, bound)


def _truncated(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def _rem(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or pair[1].least <= 0:
        return None
    a, b = pair
    if a.least >= 0 and a.most < b.least:
        return a
    if (items := _paired(a, b, lambda x, y: x - y * _truncated(x, y))) is not None:
        return Range.listed(items)
    end = b.most - 1
    if a.least < 0:
        return Range.between(-end, end)
    if b.one is not None and a.affine is not None and a.most - a.least >= b.one - 1:
        steps = [abs(by) for by, _ in a.affine[1].values()]
        if steps == [1]:
            return Range(0, end, 0, end)
    return Range.between(0, min(end, a.most))


def _monotone(known: Range, change: Callable[[int], int]) -> Range:
    """Return the range after a function that never decreases."""
    if known.items is not None:
        return Range.listed(map(change, known.items))
    return _ends(known, change)


def _ends(known: Range, change: Callable[[int], int]) -> Range:
    corners = known.corners
    return Range(
        change(known.least),
        change(known.most),
        change(known.low),
        change(known.high),
        ends=None if corners is None else (change(corners[0]), change(corners[1])),
    )


def _sign(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else _monotone(known, lambda number: (number > 0) - (number < 0))


def _abs(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    if known.least >= 0:
        return known
    if known.items is not None:
        return Range.listed(map(abs, known.items))
    most = max(-known.least, known.most)
    return Range(0, most, most, max(known.high, -known.low, 0))


def _compared(
    certain: Callable[[Range, Range], bool | None], each: Callable[[int, int], bool]
) -> _Rule:
    def rule(ranges: Ranges, step: Step) -> Range | None:
        pair = _pair(ranges, step)
        if pair is None:
            return None
        holds = certain(*pair)
        if holds is not None:
            return Range.listed([int(holds)])
        items = _paired(*pair, lambda a, b: int(each(a, b)))
        return Range.listed(items) if items is not None else None

    return rule


def _is_less(a: Range, b: Range) -> bool | None:
    if a.most < b.least:
        return True
    return False if a.least >= b.most else None


def _is_at_most(a: Range, b: Range) -> bool | None:
    after = _is_less(b, a)
    return None if after is None else not after


def _is_equal(a: Range, b: Range) -> bool | None:
    if a.one is not None and a.one == b.one:
        return True
    return False if a.most < b.least or b.most < a.least else None


def _is_different(a: Range, b: Range) -> bool | None:
    equal = _is_equal(a, b)
    return None if equal is None else not equal


def _select(ranges: Ranges, step: Step) -> Range | None:
    which = ranges.of(step.operands[0])
    cases = [ranges.of(each) for each in step.operands[1:]]
    if which is not None and which.one is not None and 0 <= which.one < len(cases):
        return cases[which.one]
    if len(cases) != 2:
        return None
    a, b = cases
    if a is None or b is None:
        return None
    if which is not None and which.items is not None:
        items = _chosen(which.items, a, b)
        if items is not None:
            return Range.listed(items)
    if _is_floor(ranges, step):
        return a
    return Range(
        min(a.least, b.least),
        max(a.most, b.most),
        min(max(a.low, b.most), max(b.low, a.most)),
        max(min(a.high, b.least), min(b.high, a.least)),
    )


def _chosen(which: Sequence[int], a: Range, b: Range) -> tuple[int, ...] | None:
    rows = []
    for case in (a, b):
        row = (case.one,) * len(which) if case.one is not None else case.items
        if row is None or len(row) != len(which):
            return None
        rows.append(row)
    return tuple(rows[bool(at)][index] for index, at in enumerate(which))


def _is_floor(ranges: Ranges, step: Step) -> bool:
    """Whether a selection is that of `//` between a quotient and one less, of what is never
    negative: `jnp.floor_divide` subtracts 1 where the signs differ.
    """
    quotient, less = ranges.maker(step.operands[1]), ranges.maker(step.operands[2])
    if quotient is None or less is None or (quotient.primitive, less.primitive) != ("div", "sub"):
        return False
    if not ranges.same(less.operands[0], step.operands[1]):
        return False
    a, b = (ranges.of(each) for each in quotient.operands)
    return a is not None and b is not None and a.least >= 0 and b.least > 0


def _convert(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    if ranges.value(step.results[0]).dtype == "bool" and not 0 <= known.least <= known.most <= 1:
        return None
    return known


def _moved(ranges: Ranges, step: Step) -> Range | None:
    return ranges.of(step.operands[0])


def _axes(change: Callable[[Step, Value, Axis], Axis | None]) -> _Rule:
    """Move the axes of affine values: `None` where an axis goes nowhere."""

    def rule(ranges: Ranges, step: Step) -> Range | None:
        known = ranges.of(step.operands[0])
        if known is None:
            return None
        moved = replace(known.bounds_alone(), ends=known.corners)
        if known.one is not None:
            return Range.listed([known.one])
        if known.affine is None:
            return moved
        value = ranges.value(step.operands[0])
        base, terms = known.affine
        renamed: dict[Axis, tuple[int, int]] = {}
        for axis, term in terms.items():
            after = change(step, value, axis) if isinstance(axis, int) else axis
            if after is None:
                return moved
            renamed[after] = term
        return replace(moved, affine=(base, renamed))

    return rule


def _listed_again(rule: _Rule) -> _Rule:
    """Keep the elements too, of a primitive that leaves them in their order."""

    def kept(ranges: Ranges, step: Step) -> Range | None:
        known, moved = ranges.of(step.operands[0]), rule(ranges, step)
        if known is None or moved is None or moved.one is not None:
            return moved
        same = elements(ranges.value(step.operands[0])) == elements(ranges.value(step.results[0]))
        return replace(moved, items=known.items) if same else moved

    return kept


def _broadcast_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    places = numbers(step, "broadcast_dimensions")
    return places[axis] if isinstance(axis, int) and axis < len(places) else None


def _squeezed_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    assert isinstance(axis, int)
    return axis - sum(gone < axis for gone in numbers(step, "dimensions"))


def _transposed_axis(step: Step, value: Value, axis: Axis) -> Axis | None:
    places = numbers(step, "permutation")
    return places.index(axis) if axis in places else None


def _reshape(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    before, after = ranges.value(step.operands[0]).shape, ranges.value(step.results[0]).shape
    moved = replace(known, affine=None)
    if known.one is not None:
        return known
    if known.affine is None:
        return moved
    base, terms = known.affine
    moved_terms: dict[Axis, tuple[int, int]] = {
        axis: term for axis, term in terms.items() if isinstance(axis, str)
    }
    wide = [axis for axis, size in enumerate(before) if size > 1]
    places = [axis for axis, size in enumerate(after) if size > 1]
    if [before[axis] for axis in wide] == [after[axis] for axis in places]:
        renamed = dict(zip(wide, places, strict=True))
        moved_terms |= {renamed[axis]: term for axis, term in terms.items() if axis in renamed}
        return replace(moved, affine=(base, moved_terms))
    if len(wide) == 1 and wide[0] in terms:
        by, row = terms[wide[0]][0], 1
        for axis in reversed(places):
            moved_terms[axis] = (by * row, after[axis])
            row *= after[axis]
        return replace(moved, affine=(base, moved_terms))
    return moved


def _slice(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    starts, after = numbers(step, "start_indices"), ranges.value(step.results[0]).shape
    strides = numbers(step, "strides") or (1,) * len(after)
    if len(starts) != len(after) or len(strides) != len(after):
        return known.some()
    if (part := _part(ranges, step.operands[0], starts, after)) is not None:
        return part
    if known.affine is not None:
        base, terms = known.affine
        cut: dict[Axis, tuple[int, int]] = {}
        for axis, (by, count) in terms.items():
            if isinstance(axis, int):
                base += by * starts[axis]
                cut[axis] = by * strides[axis], after[axis]
            else:
                cut[axis] = by, count
        return Range.of_affine(base, cut)
    before = ranges.value(step.operands[0]).shape
    if known.items is not None and len(known.items) == math.prod(before):
        places = [
            [start + stride * index for index in range(size)]
            for start, stride, size in zip(starts, strides, after, strict=True)
        ]
        return Range.listed(_picked(known.items, before, places))
    return known.some()


def _picked(
    items: Sequence[int], shape: Sequence[int], places: Sequence[Sequence[int]]
) -> Iterator[int]:
    """Yield the elements of a small array at some places of each axis, row by row."""
    for at in product(*places):
        index = 0
        for place, size in zip(at, shape, strict=True):
            index = index * size + place
        yield items[index]


def _part(ranges: Ranges, number: int, starts: Sequence[int], sizes: Sequence[int]) -> Range | None:
    """Return the one array of those that were stacked or concatenated that a slice is."""
    made = ranges.maker(number)
    if made is None or made.primitive not in ("stack", "concatenate"):
        return None
    (axis,) = numbers(made, "axis" if made.primitive == "stack" else "dimension") or (-1,)
    if not 0 <= axis < len(starts):
        return None
    at = 0
    for operand in made.operands:
        shape = ranges.value(operand).shape
        length = 1 if made.primitive == "stack" else shape[axis]
        rest = all(start == 0 for place, start in enumerate(starts) if place != axis)
        whole = shape if made.primitive != "stack" else (*shape[:axis], 1, *shape[axis:])
        if starts[axis] == at and rest and tuple(sizes) == whole:
            known = ranges.of(operand)
            if known is None or known.affine is None or made.primitive != "stack":
                return known
            base, terms = known.affine
            moved = {
                place + 1 if isinstance(place, int) and place >= axis else place: term
                for place, term in terms.items()
            }
            return replace(known, affine=(base, moved))
        at += length
    return None


def _rev(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None:
        return None
    shape, turned = ranges.value(step.results[0]).shape, numbers(step, "dimensions")
    items = known.items[::-1] if known.items is not None and len(shape) == 1 else None
    if known.affine is None:
        return replace(known, items=items)
    base, terms = known.affine
    reversed_terms: dict[Axis, tuple[int, int]] = {}
    for axis, (by, count) in terms.items():
        if axis in turned:
            base += by * (count - 1)
            by = -by
        reversed_terms[axis] = by, count
    return replace(known, affine=(base, reversed_terms), items=items)


def _concatenate(ranges: Ranges, step: Step) -> Range | None:
    return _union(ranges, step.operands)


def _union(ranges: Ranges, operands: Sequence[int]) -> Range | None:
    """Return the range of all elements of some values."""
    one_axis = all(len(ranges.value(each).shape) == 1 for each in operands)
    rows = [_row_of(ranges, each) for each in operands] if one_axis else [None]
    if all(row is not None for row in rows):
        return Range.listed(item for row in rows for item in row or ())
    return _extremes(ranges, operands)


def _extremes(ranges: Ranges, operands: Sequence[int]) -> Range | None:
    """Return what is known of elements of several arrays, wherever they are."""
    parts = [ranges.of(each) for each in operands if 0 not in ranges.value(each).shape]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return Range(
        min(part.least for part in known),
        max(part.most for part in known),
        min(part.low for part in known),
        max(part.high for part in known),
    )


def _pad(ranges: Ranges, step: Step) -> Range | None:
    parts = _pair(ranges, step)
    if parts is None:
        return None
    a, b = parts
    return Range(
        min(a.least, b.least), max(a.most, b.most), max(a.most, b.most), min(a.least, b.least)
    )


def _dynamic_slice(ranges: Ranges, step: Step) -> Range | None:
    known, shape = ranges.of(step.operands[0]), ranges.value(step.operands[0]).shape
    if known is None:
        return None
    if len(shape) == 1 and numbers(step, "slice_sizes") == (1,):
        start = index_of(ranges, step.operands[1], shape[0])
        if start is not None and start.affine is not None and start.least >= 0:
            inside = start.most < shape[0]
            if inside and known.affine is not None and set(known.affine[1]) <= {0}:
                base, terms = known.affine
                by = terms[0][0] if 0 in terms else 0
                first, counters = start.affine
                moved = {axis: (by * each, count) for axis, (each, count) in counters.items()}
                return Range.of_affine(base + by * first, moved)
            covers = start.least == 0 and start.most == shape[0] - 1
            if inside and covers and [abs(by) for by, _ in start.affine[1].values()] == [1]:
                return known.bounds_alone()
    return known.some()


def _gather(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    fills = "FILL" in dict(step.parameters).get("mode", "FILL")
    return None if known is None or fills else known.some()


def _reordered(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    return None if known is None else known.bounds_alone()


def _argument(ranges: Ranges, step: Step) -> Range | None:
    axes = numbers(step, "axes")
    shape = ranges.value(step.operands[0]).shape
    return Range.between(0, max(shape[axes[0]] - 1, 0)) if axes and shape else None


def _reduce_max(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if _is_full(ranges, step) and not _varies(known):
        whole = known.high if known.high == known.most else None
        if whole is not None:
            return Range.listed([whole])
    return Range(known.least, known.most, known.most, known.high)


def _reduce_min(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    if known is None or 0 in ranges.value(step.operands[0]).shape:
        return None
    if _is_full(ranges, step) and not _varies(known) and known.low == known.least:
        return Range.listed([known.least])
    return Range(known.least, known.most, known.low, known.least)


def _is_full(ranges: Ranges, step: Step) -> bool:
    return ranges.value(step.results[0]).shape == ()


def _varies(known: Range) -> bool:
    """Whether a value may differ between the iterations of a loop."""
    if known.items is not None:
        return False
    return known.affine is None or any(isinstance(axis, str) for axis in known.affine[1])


def _reduce_sum(ranges: Ranges, step: Step) -> Range | None:
    known = ranges.of(step.operands[0])
    value, result = ranges.value(step.operands[0]), ranges.value(step.results[0])
    if known is None or not elements(result):
        return None
    count = elements(value) // elements(result)
    if not count:
        return None
    if known.items is not None and len(known.items) == elements(value) and count == elements(value):
        return Range.listed([sum(known.items)])
    if known.affine is not None:
        base, terms = known.affine
        axes = numbers(step, "axes")
        total, kept = base * count, dict[Axis, tuple[int, int]]()
        for axis, (by, size) in terms.items():
            if axis in axes:
                total += by * (size * (size - 1) // 2) * (count // size)
            else:
                after = axis - sum(gone < axis for gone in axes) if isinstance(axis, int) else axis
                kept[after] = by * count, size
        return Range.of_affine(total, kept)
    whole = elements(result) == 1
    return Range(
        known.least * count,
        known.most * count,
        known.low + known.most * (count - 1) if whole else known.most * count,
        known.high + known.least * (count - 1) if whole else known.least * count,
    )


def _reduce_prod(ranges: Ranges, step: Step) -> Range | None:
    row = _row_of(ranges, step.operands[0])
    if row is None or not _is_full(ranges, step):
        return None
    return Range.listed([math.prod(row)])


def _row_of(ranges: Ranges, number: int) -> Sequence[int] | None:
    """Return the elements of a small array with one axis."""
    known, shape = ranges.of(number), ranges.value(number).shape
    if known is None or len(shape) != 1 or shape[0] > 4 * _LISTED:
        return None
    if not shape[0]:
        return ()
    if known.items is not None:
        return known.items if len(known.items) == shape[0] else known.items * shape[0]
    if known.affine is None or not set(known.affine[1]) <= {0}:
        return None
    by = known.affine[1].get(0, (0, 0))[0]
    return [known.affine[0] + by * index for index in range(shape[0])]


def _cumulative(each: Callable[[int, int], int]) -> _Rule:
    def rule(ranges: Ranges, step: Step) -> Range | None:
        known, shape = ranges.of(step.operands[0]), ranges.value(step.operands[0]).shape
        if known is None or not shape:
            return None
        row = _row_of(ranges, step.operands[0])
        if row is not None:
            ordered = list(reversed(row)) if parameter(step, "reverse") else list(row)
            total, results = None, []
            for item in ordered:
                total = item if total is None else each(total, item)
                results.append(total)
            return Range.listed(results)
        if step.primitive != "cumsum":
            return None
        axis = numbers(step, "axis")
        length = shape[axis[0]] if axis else 0
        ends = (known.least * length, known.most * length, known.least, known.most)
        last = known.least * length
        if known.affine is not None and set(known.affine[1]) <= {0} and len(shape) == 1:
            base, terms = known.affine
            by = terms[0][0] if 0 in terms else 0
            last = base * length + by * (length * (length - 1) // 2)
            return Range(min(ends), max(ends), min(max(ends), last), max(min(ends), last))
        return Range(min(ends), max(ends), max(ends), max(min(ends), last))

    return rule


def _dot(ranges: Ranges, step: Step) -> Range | None:
    pair = _pair(ranges, step)
    if pair is None or not elements(ranges.value(step.results[0])):
        return None
    contracted = parameter(step, "dimension_numbers")
    match contracted:
        case (((*axes,), _), _):
            shape = ranges.value(step.operands[0]).shape
            count = math.prod(shape[axis] for axis in axes if isinstance(axis, int))
        case _:
            return None
    row, column = (_affine_row(ranges, number) for number in step.operands)
    if row is not None and column is not None:
        (a, b), (c, d) = row, column
        total = count * (count - 1) // 2
        squares = total * (2 * count - 1) // 3
        return Range.listed([a * c * count + (a * d + b * c) * total + b * d * squares])
    corners = [x * y for x in (pair[0].least, pair[0].most) for y in (pair[1].least, pair[1].most)]
    return Range.between(count * min(corners), count * max(corners))


def _affine_row(ranges: Ranges, number: int) -> tuple[int, int] | None:
    """Return the first element of an affine vector, and the difference of its elements."""
    known = ranges.of(number)
    if known is None or known.affine is None or len(ranges.value(number).shape) != 1:
        return None
    base, terms = known.affine
    return (base, terms[0][0] if 0 in terms else 0) if set(terms) <= {0} else None


def _pair(ranges: Ranges, step: Step) -> tuple[Range, Range] | None:
    if len(step.operands) != 2:
        return None
    a, b = (ranges.of(each) for each in step.operands)
    return None if a is None or b is None else (a, b)


def index_of(ranges: Ranges, number: int, size: int) -> Range | None:
    """Return the range of an index as it was written, before negative ones were counted from the
    end.
    """
    return ranges.of(written(ranges, number, size)[0])


def written(ranges: Ranges, number: int, size: int) -> tuple[int, bool]:
    """Return the value that an index was before JAX counted negative ones from the end, and
    whether it does.

    JAX selects `i + size` where `i < 0`. An `i` that is at least `size`, or below `-size`, is out
    of bounds whichever of the two is selected.
    """
    for _ in range(8):
        step = ranges.maker(number)
        if step is None:
            break
        if step.primitive == "select_n" and len(step.operands) == 3:
            added = ranges.maker(_unconverted(ranges, step.operands[2]))
            before = _unconverted(ranges, step.operands[1])
            if added is None or added.primitive != "add" or len(added.operands) != 2:
                break
            by = ranges.of(added.operands[1])
            counted = _unconverted(ranges, added.operands[0])
            if by is None or by.one != size or not ranges.same(counted, before):
                break
            return before, True
        if step.primitive == "convert_element_type" and not _fits(ranges, step):
            break
        if step.primitive not in _UNCHANGING:
            break
        number = step.operands[0]
    return number, False


def _unconverted(ranges: Ranges, number: int) -> int:
    """Return the value that conversions between integers were made of."""
    step = ranges.maker(number)
    while step is not None and step.primitive == "convert_element_type" and _fits(ranges, step):
        number = step.operands[0]
        step = ranges.maker(number)
    return number


def _fits(ranges: Ranges, step: Step) -> bool:
    """Whether a conversion between integers keeps all values."""
    known, within = ranges.of(step.operands[0]), limits(ranges.value(step.results[0]).dtype)
    return (
        known is not None
        and within is not None
        and (within[0] <= known.least and known.most <= within[1])
    )


_UNCHANGING = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "copy",
     "transpose"}
)  # fmt: skip

_Rule = Callable[[Ranges, Step], Range | None]

_RULES: Mapping[str, _Rule] = {
    "abs": _abs,
    "add": _add,
    "add_any": _add,
    "and": _and,
    "argmax": _argument,
    "argmin": _argument,
    "broadcast_in_dim": _listed_again(_axes(_broadcast_axis)),
    "clamp": _clamp,
    "concatenate": _concatenate,
    "convert_element_type": _convert,
    "copy": _moved,
    "copy_p": _moved,
    "cummax": _cumulative(max),
    "cummin": _cumulative(min),
    "cumprod": _cumulative(lambda total, item: total * item),
    "cumsum": _cumulative(lambda total, item: total + item),
    "div": _div,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "eq": _compared(_is_equal, operator.eq),
    "gather": _gather,
    "ge": _compared(lambda a, b: _is_at_most(b, a), operator.ge),
    "gt": _compared(lambda a, b: _is_less(b, a), operator.gt),
    "integer_pow": _integer_pow,
    "le": _compared(_is_at_most, operator.le),
    "lt": _compared(_is_less, operator.lt),
    "max": _max,
    "min": _min,
    "mul": _mul,
    "ne": _compared(_is_different, operator.ne),
    "neg": _neg,
    "not": _not,
    "or": _or,
    "pad": _pad,
    "reduce_max": _reduce_max,
    "reduce_min": _reduce_min,
    "reduce_prod": _reduce_prod,
    "reduce_sum": _reduce_sum,
    "rem": _rem,
    "reshape": _reshape,
    "rev": _rev,
    "select_n": _select,
    "shift_left": _shift_left,
    "shift_right_arithmetic": _shift_right,
    "shift_right_logical": _shift_right,
    "sign": _sign,
    "slice": _slice,
    "sort": _reordered,
    "stack": lambda ranges, step: _extremes(ranges, step.operands),
    "square": lambda ranges, step: (
        None if (known := ranges.of(step.operands[0])) is None else _power(known, 2)
    ),
    "squeeze": _listed_again(_axes(_squeezed_axis)),
    "stop_gradient": _moved,
    "sub": _sub,
    "tile": _reordered,
    "transpose": _axes(_transposed_axis),
}
