"""What is known of the values of an array while tracing: bounds, signs, whole numbers.

Bounds are those of exact arithmetic, and never narrower: where nothing is known they are infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import COLLECTIVES, Intervals
from jaxsight.rules.program.loops import passed
from jaxsight.wire.primitives import MOVES, PICKS
from jaxsight.wire.program import Step

Bounds = tuple[float, float]

_KEEPS_WHOLE = frozenset(
    {"add", "sub", "mul", "neg", "abs", "max", "min", "reduce_sum", "square"}
)  # fmt: skip
_KEEPS_SIGN = PICKS | {
    "sqrt", "rsqrt", "log1p", "expm1", "integer_pow", "square", "abs", "pow", "reduce_sum",
    "cumsum", "reduce_max", "reduce_min", "reduce_prod", "sort",
}  # fmt: skip
"""Primitives whose result is positive where their first operand is."""


class ValueBounds:
    """What is known of the values of one program. What was asked for once is kept."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._intervals = Intervals(flow, exact=False)
        self._passed = passed(flow)
        self._whole: dict[int, bool] = {}
        self._positive: dict[int, bool] = {}

    def bounds(self, number: int) -> Bounds:
        """Return the least and the greatest number that the elements of a value may be."""
        interval = self._intervals.interval(number)
        return interval.least, interval.most

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
        literal_value = flow.literal(number)
        if literal_value is not None:
            return literal_value.is_integer()
        step = flow.producer(number)
        if step is None or not depth:
            return False
        if step.primitive in ("round", "floor", "ceil", "sign", "iota"):
            return True
        match step.primitive:
            case "select_n":
                operands = step.operands[1:]
            case primitive if primitive in MOVES | PICKS:
                operands = step.operands[:1]
            case primitive if primitive in _KEEPS_WHOLE:
                operands = step.operands
            case _:
                return False
        return all(self.is_whole(operand, depth - 1) for operand in operands)

    def is_positive(self, number: int, depth: int = 20) -> bool:
        """Whether the elements of a value are above 0 in exact arithmetic; `depth` as above."""
        number = self.flow.stripped(number)
        if number not in self._positive:
            self._positive[number] = self._is_positive(number, depth)
        return self._positive[number]

    def _is_positive(self, number: int, depth: int) -> bool:
        flow, step = self.flow, self.flow.producer(number)
        if self.bounds(number)[0] > 0:
            return True
        if not depth:
            return False
        if step is None:
            outer = self._passed.get(number)
            return outer is not None and self.is_positive(outer, depth - 1)
        if step.primitive in COLLECTIVES:
            return self.is_positive(step.operands[step.results.index(number)], depth - 1)

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
                less = flow.maker_of(step.operands[1])
                is_below_1 = less is not None and less.primitive in ("logistic", "tanh")
                return is_below_1 and self.bounds(step.operands[0])[0] >= 1
            case "clamp":
                return all(are(step.operands[::2]))
            case "select_n":
                return all(are(self._cases(step)))
            case "mul" | "div" | "min" | "concatenate":
                return all(are(step.operands))
            case primitive:
                return primitive in _KEEPS_SIGN and self.is_positive(step.operands[0], depth - 1)

    def _cases(self, step: Step) -> Sequence[int]:
        """Return the cases of a selection without that of NaN, as of `jnp.logaddexp`."""
        predicate = self.flow.producer(step.operands[0])
        is_nan = (
            predicate is not None
            and predicate.primitive == "ne"
            and len(set(map(self.flow.of, predicate.operands))) == 1
        )
        return step.operands[1:2] if is_nan else step.operands[1:]
