"""What is known of the values of an array while tracing: bounds, whole numbers, equal expressions.

Bounds are those of exact arithmetic, and never narrower: where nothing is known they are infinite.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.program.view import SHAPED, Flow, elements, is_known, numbers
from jaxsight.wire.program import LITERAL, Step

MOVES = SHAPED | {"convert_element_type", "copy", "copy_p", "stop_gradient", "reduce_precision"}
"""Primitives whose result has the elements of their operand, up to rounding."""
PICKS = frozenset({"gather", "dynamic_slice"})
"""Primitives that take some elements of their first operand."""

Bounds = tuple[float, float]

_ANY: Bounds = (-math.inf, math.inf)
_SAME = frozenset({"reduce_max", "reduce_min", "cummax", "cummin"}) | PICKS
_JOINED = frozenset({"concatenate", "pad"})
_WITHIN: dict[str, Bounds] = {
    "tanh": (-1, 1), "sin": (-1, 1), "cos": (-1, 1), "erf": (-1, 1), "sign": (-1, 1),
    "logistic": (0, 1), "erfc": (0, 2), "acos": (0, math.pi), "atan2": (-math.pi, math.pi),
    "asin": (-math.pi / 2, math.pi / 2), "atan": (-math.pi / 2, math.pi / 2),
    "cosh": (1, math.inf), "sqrt": (0, math.inf), "rsqrt": (0, math.inf),
    "population_count": (0, 64), "argmax": (0, math.inf), "argmin": (0, math.inf),
}  # fmt: skip
_MOST = 40
"""How many equations are looked through, one after the other."""


@dataclass(slots=True)
class Known:
    """What is known of the values of one program. What was asked for once is kept."""

    flow: Flow
    _bounds: dict[int, Bounds] = field(default_factory=dict)
    _varies: dict[int, bool] = field(default_factory=dict)
    _whole: dict[int, bool] = field(default_factory=dict)
    _positive: dict[int, bool] = field(default_factory=dict)

    def bounds(self, number: int, depth: int = _MOST) -> Bounds:
        """Return the least and the greatest number that the elements of a value may be."""
        number = self.flow.of(number)
        found = self._bounds.get(number)
        if found is None:
            found = self._of(number, depth)
            self._bounds[number] = found
        return found

    def literal(self, number: int) -> float | None:
        """Return the number of a value that is a moved or reshaped literal, else `None`."""
        return literal(self.flow, number)

    def varies(self, number: int) -> bool:
        """Whether a value depends on an input, which is not known while tracing."""
        flow, waiting, seen = self.flow, [number], set[int]()
        while waiting:
            each = flow.of(waiting.pop())
            step = flow.maker.get(each)
            if self._varies.get(each) or (step is None and not is_known(flow.values[each])):
                self._varies[flow.of(number)] = True
                return True
            if step is not None and each not in seen and each not in self._varies:
                waiting += step.operands
            seen.add(each)
        self._varies.update(dict.fromkeys(seen, False))
        return False

    def is_whole(self, number: int, depth: int = 12) -> bool:
        """Whether the elements of a value are whole numbers."""
        number = self.flow.of(number)
        if number not in self._whole:
            self._whole[number] = self._is_whole(number, depth)
        return self._whole[number]

    def _is_whole(self, number: int, depth: int) -> bool:
        flow = self.flow
        if flow.values[number].dtype.startswith(("int", "uint", "bool")):
            return True
        said = self.literal(number)
        if said is not None:
            return said.is_integer()
        step = flow.made_by(number)
        if step is None or not depth:
            return False
        if step.primitive in ("round", "floor", "ceil", "sign", "iota"):
            return True
        if step.primitive == "select_n":
            return all(self.is_whole(each, depth - 1) for each in step.operands[1:])
        if step.primitive in MOVES | PICKS:
            return self.is_whole(step.operands[0], depth - 1)
        inexact = {"add", "sub", "mul", "neg", "abs", "max", "min", "reduce_sum", "square"}
        return step.primitive in inexact and all(
            self.is_whole(each, depth - 1) for each in step.operands
        )

    def is_positive(self, number: int, depth: int = 20) -> bool:
        """Whether the elements of a value are above 0 in exact arithmetic."""
        number = stripped(self.flow, number)
        if number not in self._positive:
            self._positive[number] = self._is_positive(number, depth)
        return self._positive[number]

    def _is_positive(self, number: int, depth: int) -> bool:
        flow, step = self.flow, self.flow.made_by(number)
        if self.bounds(number)[0] > 0:
            return True
        if step is None or not depth:
            return False

        def are(operands: Sequence[int]) -> list[bool]:
            return [self.is_positive(each, depth - 1) for each in operands]

        match step.primitive:
            case "exp" | "exp2" | "logistic" | "cosh" | "erfc":
                return True
            case "add" | "add_any":
                positive = are(step.operands)
                rest = (self.bounds(each)[0] >= 0 for each in step.operands)
                return all(positive) or (any(positive) and all(rest))
            case "max":
                return any(are(step.operands))
            case "sub":
                taken = made(flow, step.operands[1])
                least = self.bounds(step.operands[0])[0]
                return taken is not None and taken.primitive in ("logistic", "tanh") and least >= 1
            case "clamp":
                return all(are(step.operands[::2]))
            case "select_n":
                return all(are([*self._cases(step)]))
            case "mul" | "div" | "min" | "concatenate":
                return all(are(step.operands))
            case "sqrt" | "rsqrt" | "log1p" | "expm1" | "integer_pow" | "square" | "abs" | "pow":
                return self.is_positive(step.operands[0], depth - 1)
            case "reduce_sum" | "cumsum" | "reduce_max" | "reduce_min" | "reduce_prod" | "sort":
                return self.is_positive(step.operands[0], depth - 1)
            case "gather" | "dynamic_slice":
                return self.is_positive(step.operands[0], depth - 1)
            case _:
                return False

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
            said = self.literal(number)
            return (said, said) if said is not None and not math.isnan(said) else _ANY
        if value.dtype == "bool":
            return (0, 1)
        if step is None or not depth:
            return (0, math.inf) if value.dtype.startswith("uint") else _ANY
        if step.primitive == "iota":
            return (0, max(value.shape, default=1) - 1)
        if step.primitive == "select_n":
            return _hull([self.bounds(each, depth - 1) for each in step.operands[1:]])
        if step.primitive in _JOINED:
            return _hull([self.bounds(each, depth - 1) for each in step.operands])
        if step.primitive in MOVES | _SAME:
            return self.bounds(step.operands[0], depth - 1)
        if step.primitive == "sort":
            index = step.results.index(number) if number in step.results else 0
            return self.bounds(step.operands[index], depth - 1)
        if step.primitive in _WITHIN:
            return _WITHIN[step.primitive]
        if step.primitive == "div" and self._is_share(step):
            return (0, 1)
        if step.primitive == "sub" and self._is_uniform(step):
            return (0, 1)
        if self._is_cosine(step):
            return (-1, 1)
        return self._computed(step, [self.bounds(each, depth - 1) for each in step.operands])

    def _computed(self, step: Step, given: Sequence[Bounds]) -> Bounds:
        match step.primitive, given:
            case "neg", [(low, high)]:
                return (-high, -low)
            case "abs", [(low, high)]:
                return (max(low, -high, 0), max(-low, high))
            case "max", [(low, high), (other, most)]:
                return (max(low, other), max(high, most))
            case "min", [(low, high), (other, most)]:
                return (min(low, other), min(high, most))
            case "clamp", [(low, most), (least, greatest), (bottom, high)]:
                return (max(low, min(least, bottom)), min(high, max(greatest, most)))
            case (("add" | "add_any"), [(low, high), (other, most)]):
                return (low + other, high + most)
            case "sub", [(low, high), (other, most)]:
                return (low - most, high - other)
            case "mul", [one, other]:
                if alike(self.flow, step.operands[0], step.operands[1]):
                    return _squared(one)
                return _hull([(p, p) for a in one for b in other if not math.isnan(p := _by(a, b))])
            case "div", [one, (low, high)] if low > 0 or high < 0:
                ends = [1 / low, 1 / high] if low and high else [0, math.copysign(math.inf, low)]
                return _hull([(p, p) for a in one for b in ends if not math.isnan(p := _by(a, b))])
            case "div", [(low, _), (least, _)] if low >= 0 and least >= 0:
                return (0, math.inf)
            case "square", [one]:
                return _squared(one)
            case "integer_pow", [(low, high)]:
                power = next(iter(numbers(step, "y")), 1)
                if power == 2:
                    return _squared((low, high))
                return (0, math.inf) if power % 2 == 0 or low >= 0 else _ANY
            case (("exp" | "exp2"), [(low, high)]):
                return (_exp(low), _exp(high))
            case "expm1", [(low, high)]:
                return (_exp(low) - 1, _exp(high) - 1)
            case (("log" | "log2"), [(low, high)]):
                return (math.log(low) if low > 0 else -math.inf, _log(high))
            case "log1p", [(low, high)]:
                return (math.log1p(low) if low > -1 else -math.inf, _log(1 + high))
            case "pow", [(low, _), _] if low >= 0:
                return (0, math.inf)
            case (("floor" | "ceil" | "round"), [(low, high)]):
                return (low - 1, high + 1)
            case (("reduce_sum" | "cumsum"), [(low, high)]):
                axes = elements(self.flow.value(step.operands[0]))
                least = 1 if step.primitive == "cumsum" else axes // max(1, self._kept(step))
                return (
                    low * least if low > 0 else (0 if low == 0 else -math.inf),
                    0 if high == 0 else (high * least if high < 0 else high * axes),
                )
            case "reduce_prod", [(low, high)] if low >= 0:
                return (0, 1 if high <= 1 else math.inf)
            case "dot_general", [(low, _), (least, _)] if low >= 0 and least >= 0:
                return (0, math.inf)
            case _:
                return _ANY

    def _kept(self, step: Step) -> int:
        return elements(self.flow.value(step.results[0]))

    def _is_share(self, step: Step) -> bool:
        """Whether a quotient is of numbers that are not negative by their own sum."""
        flow = self.flow
        total = made(flow, step.operands[1])
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
        step = made(flow, number)
        if step is None or step.primitive not in ("div", "mul"):
            return False
        norm = made(flow, step.operands[1], frozenset({"add", "max", "div"}))
        if norm is None or norm.primitive not in ("sqrt", "rsqrt"):
            return False
        total = made(flow, norm.operands[0], frozenset({"add", "max"}))
        square = made(flow, total.operands[0]) if total is not None else None
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


def literal(flow: Flow, number: int) -> float | None:
    """Return the number of a value that is a moved or reshaped literal, else `None`."""
    value = flow.values[stripped(flow, number)]
    if value.origin != LITERAL or not value.said:
        return None
    if value.said.lstrip("-") in ("inf", "nan"):
        return float(value.said)
    try:
        return float(ast.literal_eval(value.said))
    except (ValueError, SyntaxError, TypeError, OverflowError):
        return None


def stripped(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> int:
    """Return the value that a value is a moved or reshaped copy of."""
    number = flow.of(number)
    step = flow.made_by(number)
    while step is not None and step.operands and step.primitive in MOVES | also:
        number = flow.of(step.operands[0])
        step = flow.made_by(number)
    return number


def made(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> Step | None:
    """Return the step that makes what a value is a moved or reshaped copy of."""
    return flow.made_by(stripped(flow, number, also))


def alike(flow: Flow, one: int, other: int, depth: int = 8) -> bool:
    """Whether two values are computed alike from the same ones."""
    one, other = flow.of(one), flow.of(other)
    if one == other:
        return True
    first, second = flow.made_by(one), flow.made_by(other)
    if first is None or second is None:
        a, b = flow.values[one], flow.values[other]
        return a.origin == b.origin == LITERAL and bool(a.said) and a.said == b.said
    return (
        depth > 0
        and first.primitive == second.primitive
        and first.parameters == second.parameters
        and not first.bodies
        and not first.primitive.startswith("random_")
        and len(first.operands) == len(second.operands)
        and flow.values[one].shape == flow.values[other].shape
        and all(
            alike(flow, a, b, depth - 1)
            for a, b in zip(first.operands, second.operands, strict=True)
        )
    )


def readers(
    flow: Flow, number: int, through: Callable[[Step], bool], most: int = 50
) -> Iterator[tuple[int, Step]]:
    """Yield the steps that read a value or what `through` makes of it, each with what it reads."""
    waiting, seen = [flow.of(number)], set[str]()
    while waiting and most:
        each = waiting.pop()
        for user in flow.used_by(each):
            if user.path in seen:
                continue
            seen.add(user.path)
            most -= 1
            yield each, user
            if through(user):
                waiting += user.results


def is_in_branch(flow: Flow, step: Step) -> bool:
    """Whether an equation is in a branch that a comparison chooses: it may be guarded."""
    around = flow.parent.get(step.path)
    while around is not None and around.primitive != "cond":
        around = flow.parent.get(around.path)
    if around is None:
        return False
    through = MOVES | {"and", "or", "not", "clamp", "min", "max", "reduce_and", "reduce_or"}
    chosen = flow.above(around.operands[0], lambda each: each.primitive in through, 20)
    return any(each.primitive in ("gt", "ge", "lt", "le", "eq", "ne") for each in chosen)


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    if not bounds:
        return _ANY
    return (min(low for low, _ in bounds), max(high for _, high in bounds))


def _squared(bounds: Bounds) -> Bounds:
    low, high = bounds
    least = max(low, -high, 0)
    return (least * least, max(low * low, high * high))


def _by(one: float, other: float) -> float:
    return 0.0 if one == 0 or other == 0 else one * other


def _exp(number: float) -> float:
    return math.exp(number) if number < 700 else math.inf


def _log(number: float) -> float:
    return math.log(number) if 0 < number < math.inf else math.inf
