"""What is known of the values of an array while tracing: bounds, signs, whole numbers.

Bounds are those of exact arithmetic, and never narrower: where nothing is known they are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import passed
from jaxsight.rules.program.steps import elements, numbers
from jaxsight.rules.program.walks import alike, literal, maker_of, stripped
from jaxsight.wire.primitives import MOVES, PICKS
from jaxsight.wire.program import LITERAL, Step

Bounds = tuple[float, float]

ANY: Bounds = (-math.inf, math.inf)
_EXCHANGES = frozenset(
    {"pmax", "pmin", "pvary", "pcast", "all_gather", "all_gather_invariant", "all_to_all"}
)
"""Collectives whose results have elements of their operands, each by its own operand."""
_SUMS_OF_DEVICES = frozenset({"psum", "psum_invariant", "reduce_scatter"})
"""Sums over one or more devices, each by its own operand."""
_SAME = frozenset({"reduce_max", "reduce_min", "cummax", "cummin"}) | PICKS
_JOINED = frozenset({"concatenate", "pad"})
_WITHIN: dict[str, Bounds] = {
    "tanh": (-1, 1), "sin": (-1, 1), "cos": (-1, 1), "erf": (-1, 1), "sign": (-1, 1),
    "logistic": (0, 1), "erfc": (0, 2), "acos": (0, math.pi), "atan2": (-math.pi, math.pi),
    "asin": (-math.pi / 2, math.pi / 2), "atan": (-math.pi / 2, math.pi / 2),
    "cosh": (1, math.inf), "sqrt": (0, math.inf), "rsqrt": (0, math.inf),
    "population_count": (0, 64), "argmax": (0, math.inf), "argmin": (0, math.inf),
}  # fmt: skip
_KEEPS_SIGN = PICKS | {
    "sqrt", "rsqrt", "log1p", "expm1", "integer_pow", "square", "abs", "pow", "reduce_sum",
    "cumsum", "reduce_max", "reduce_min", "reduce_prod", "sort",
}  # fmt: skip
"""Primitives whose result is positive where their first operand is."""
_MOST = 40
"""How many equations are looked through, one after the other, a choice: fewer lose bounds in long
expressions, more recurse through whole programs."""


@dataclass(slots=True)
class KnownValues:
    """What is known of the values of one program. What was asked for once is kept."""

    flow: Flow
    _bounds: dict[int, Bounds] = field(default_factory=dict)
    _whole: dict[int, bool] = field(default_factory=dict)
    _positive: dict[int, bool] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._passed = passed(self.flow)

    def bounds(self, number: int, depth: int = _MOST) -> Bounds:
        """Return the least and the greatest number that the elements of a value may be."""
        number = self.flow.of(number)
        bounds = self._bounds.get(number)
        if bounds is None:
            bounds = self._of(number, depth)
            self._bounds[number] = bounds
        return bounds

    def literal(self, number: int) -> float | None:
        """Return the number of a value that is a moved or reshaped literal, else `None`."""
        return literal(self.flow, number)

    def varies(self, number: int) -> bool:
        """Whether a value depends on an input, which is not known while tracing."""
        return self.flow.of(number) in self.flow.varying

    def is_whole(self, number: int, depth: int = 12) -> bool:
        """Whether the elements of a value are whole numbers, made in at most `depth` equations."""
        number = self.flow.of(number)
        if number not in self._whole:
            self._whole[number] = self._is_whole(number, depth)
        return self._whole[number]

    def _is_whole(self, number: int, depth: int) -> bool:
        flow = self.flow
        if flow.values[number].dtype.startswith(("int", "uint", "bool")):
            return True
        literal_value = self.literal(number)
        if literal_value is not None:
            return literal_value.is_integer()
        step = flow.made_by(number)
        if step is None or not depth:
            return False
        if step.primitive in ("round", "floor", "ceil", "sign", "iota"):
            return True
        if step.primitive == "select_n":
            return all(self.is_whole(operand, depth - 1) for operand in step.operands[1:])
        if step.primitive in MOVES | PICKS:
            return self.is_whole(step.operands[0], depth - 1)
        inexact = {"add", "sub", "mul", "neg", "abs", "max", "min", "reduce_sum", "square"}
        return step.primitive in inexact and all(
            self.is_whole(operand, depth - 1) for operand in step.operands
        )

    def is_positive(self, number: int, depth: int = 20) -> bool:
        """Whether the elements of a value are above 0 in exact arithmetic; `depth` as above."""
        number = stripped(self.flow, number)
        if number not in self._positive:
            self._positive[number] = self._is_positive(number, depth)
        return self._positive[number]

    def _is_positive(self, number: int, depth: int) -> bool:
        flow, step = self.flow, self.flow.made_by(number)
        if self.bounds(number)[0] > 0:
            return True
        if not depth:
            return False
        if step is None:
            outer = self._passed.get(number)
            return outer is not None and self.is_positive(outer, depth - 1)
        if step.primitive in _EXCHANGES | _SUMS_OF_DEVICES:
            return self.is_positive(_own_operand(step, number), depth - 1)

        def are(operands: Sequence[int]) -> list[bool]:
            return [self.is_positive(operand, depth - 1) for operand in operands]

        match step.primitive:
            case "exp" | "exp2" | "logistic" | "cosh" | "erfc":
                return True
            case "add" | "add_any":
                positive = are(step.operands)
                not_negative = (self.bounds(operand)[0] >= 0 for operand in step.operands)
                return all(positive) or (any(positive) and all(not_negative))
            case "max":
                return any(are(step.operands))
            case "sub":
                subtracted = maker_of(flow, step.operands[1])
                least = self.bounds(step.operands[0])[0]
                return (
                    subtracted is not None
                    and subtracted.primitive in ("logistic", "tanh")
                    and least >= 1
                )
            case "clamp":
                return all(are(step.operands[::2]))
            case "select_n":
                return all(are([*self._cases(step)]))
            case "mul" | "div" | "min" | "concatenate":
                return all(are(step.operands))
            case primitive:
                return primitive in _KEEPS_SIGN and self.is_positive(step.operands[0], depth - 1)

    def _cases(self, step: Step) -> Iterator[int]:
        """Yield the cases of a selection without that of NaN, as of `jnp.logaddexp`."""
        predicate = self.flow.made_by(step.operands[0])
        nan = (
            predicate is not None
            and predicate.primitive == "ne"
            and self.flow.of(predicate.operands[0]) == self.flow.of(predicate.operands[1])
        )
        yield from step.operands[1:2] if nan else step.operands[1:]

    def _of(self, number: int, depth: int) -> Bounds:
        value, step = self.flow.values[number], self.flow.made_by(number)
        if value.origin == LITERAL:
            literal_value = self.literal(number)
            return (
                (literal_value, literal_value)
                if literal_value is not None and not math.isnan(literal_value)
                else ANY
            )
        if value.dtype == "bool":
            return (0, 1)
        if step is None and depth and (outer := self._passed.get(number)) is not None:
            return self.bounds(outer, depth - 1)
        if step is None or not depth:
            return (0, math.inf) if value.dtype.startswith("uint") else ANY
        if step.primitive in _EXCHANGES | _SUMS_OF_DEVICES:
            low, high = self.bounds(_own_operand(step, number), depth - 1)
            if step.primitive in _EXCHANGES:
                return (low, high)
            return (low if low >= 0 else -math.inf, high if high <= 0 else math.inf)
        if step.primitive == "iota":
            return (0, max(value.shape, default=1) - 1)
        if step.primitive == "select_n":
            return _hull([self.bounds(operand, depth - 1) for operand in step.operands[1:]])
        if step.primitive in _JOINED:
            return _hull([self.bounds(operand, depth - 1) for operand in step.operands])
        if step.primitive in MOVES | _SAME:
            return self.bounds(step.operands[0], depth - 1)
        if step.primitive == "sort":
            index = step.results.index(number) if number in step.results else 0
            return self.bounds(step.operands[index], depth - 1)
        return self._within(step) or self._computed(
            step, [self.bounds(operand, depth - 1) for operand in step.operands]
        )

    def _within(self, step: Step) -> Bounds | None:
        """Return bounds that hold whatever the operands are, by what an equation is part of."""
        if step.primitive in _WITHIN:
            return _WITHIN[step.primitive]
        if step.primitive == "div" and self._is_share(step):
            return (0, 1)
        if step.primitive == "sub" and self._is_uniform(step):
            return (0, 1)
        return (-1, 1) if self._is_cosine(step) else None

    def _computed(self, step: Step, operands: Sequence[Bounds]) -> Bounds:
        match step.primitive, operands:
            case "mul", [first, second]:
                if alike(self.flow, *step.operands):
                    return _squared(first)
                return _products(first, second)
            case "integer_pow", [(low, high)]:
                power = next(iter(numbers(step, "y")), 1)
                if power == 2:
                    return _squared((low, high))
                return (0, math.inf) if power % 2 == 0 or low >= 0 else ANY
            case (("reduce_sum" | "cumsum"), [bounds]):
                return self._summed(step, bounds)
            case "dot_general", [(low, _), (least, _)] if low >= 0 and least >= 0:
                return (0, math.inf)
            case _, [bounds]:
                return _of_one(step.primitive, bounds)
            case _, [first, second]:
                return _of_two(step.primitive, first, second)
            case "clamp", [(low, most), (least, greatest), (bottom, high)]:
                return (max(low, min(least, bottom)), min(high, max(greatest, most)))
            case _:
                return ANY

    def _summed(self, step: Step, bounds: Bounds) -> Bounds:
        low, high = bounds
        most = elements(self.flow.value(step.operands[0]))
        sums = elements(self.flow.value(step.results[0]))
        least = 1 if step.primitive == "cumsum" else most // max(1, sums)
        return (
            low * least if low > 0 else (0 if low == 0 else -math.inf),
            0 if high == 0 else (high * least if high < 0 else high * most),
        )

    def _is_share(self, step: Step) -> bool:
        """Whether a quotient is of numbers that are not negative by their own sum."""
        flow = self.flow
        total = maker_of(flow, step.operands[1])
        return (
            total is not None
            and total.primitive == "reduce_sum"
            and alike(flow, stripped(flow, total.operands[0]), stripped(flow, step.operands[0]))
            and self.bounds(step.operands[0])[0] >= 0
        )

    def _is_cosine(self, step: Step) -> bool:
        """Whether a value is of products of unit vectors."""
        if step.primitive == "reduce_sum":
            product = self.flow.made_by(step.operands[0])
            if product is None or product.primitive != "mul":
                return False
            step = product
        elif step.primitive != "dot_general":
            return False
        return all(map(self._is_unit, step.operands))

    def _is_unit(self, number: int) -> bool:
        """Whether a value is divided by its own norm, perhaps with a number added to that."""
        flow = self.flow
        step = maker_of(flow, number)
        if step is None or step.primitive not in ("div", "mul"):
            return False
        norm = maker_of(flow, step.operands[1], frozenset({"add", "max", "div"}))
        if norm is None or norm.primitive not in ("sqrt", "rsqrt"):
            return False
        total = maker_of(flow, norm.operands[0], frozenset({"add", "max"}))
        square = maker_of(flow, total.operands[0]) if total is not None else None
        return (
            total is not None
            and total.primitive == "reduce_sum"
            and square is not None
            and square.primitive in ("mul", "square", "integer_pow")
            and alike(flow, stripped(flow, square.operands[0]), stripped(flow, step.operands[0]))
        )

    def _is_uniform(self, step: Step) -> bool:
        """Return whether a difference is the first of `jax.random.uniform`.

        It subtracts 1 from a number from 1 to 2 whose digits are random bits.
        """
        bits = self.flow.made_by(step.operands[0])
        return (
            bits is not None
            and bits.primitive == "bitcast_convert_type"
            and self.literal(step.operands[1]) == 1
        )


def _own_operand(step: Step, number: int) -> int:
    """Return the operand that a result of a collective is made of: it has as many of both."""
    return step.operands[step.results.index(number)]


def _of_one(primitive: str, bounds: Bounds) -> Bounds:
    """Return the bounds of an elementwise function, or a product, of one array."""
    low, high = bounds
    match primitive:
        case "exp" | "exp2" | "expm1":
            base, less = math.log(2) if primitive == "exp2" else 1, primitive == "expm1"
            return (_exp(base * low) - less, _exp(base * high) - less)
        case "log" | "log2" | "log1p":
            base, more = math.log(2) if primitive == "log2" else 1, primitive == "log1p"
            return (_log(low + more, -math.inf) / base, _log(high + more, math.inf) / base)
        case "neg":
            return (-high, -low)
        case "abs":
            return (max(low, -high, 0), max(-low, high))
        case "square":
            return _squared(bounds)
        case "floor" | "ceil" | "round":
            return (low - 1, high + 1)
        case "reduce_prod" if low >= 0:
            return (0, 1 if high <= 1 else math.inf)
        case _:
            return ANY


def _of_two(primitive: str, first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of an elementwise function of two arrays."""
    (low, high), (least, most) = first, second
    match primitive:
        case "max":
            return (max(low, least), max(high, most))
        case "min":
            return (min(low, least), min(high, most))
        case "add" | "add_any":
            return (low + least, high + most)
        case "sub":
            return (low - most, high - least)
        case "div" if least > 0 or most < 0:
            inverses = (
                (1 / least, 1 / most) if least and most else (0, math.copysign(math.inf, least))
            )
            return _products(first, inverses)
        case "div" if low >= 0 and least >= 0:
            return (0, math.inf)
        case "pow" if low >= 0:
            return (0, math.inf)
        case _:
            return ANY


def _products(first: Bounds, second: Bounds) -> Bounds:
    products = [0.0 if 0 in (a, b) else a * b for a in first for b in second]
    return (min(products), max(products))


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    if not bounds:
        return ANY
    return (min(low for low, _ in bounds), max(high for _, high in bounds))


def _squared(bounds: Bounds) -> Bounds:
    low, high = bounds
    least = max(low, -high, 0)
    return (least * least, max(low * low, high * high))


def _exp(number: float) -> float:
    return math.exp(number) if number < 700 else math.inf  # it overflows from 709.8 on


def _log(number: float, otherwise: float) -> float:
    return math.log(number) if 0 < number < math.inf else otherwise
