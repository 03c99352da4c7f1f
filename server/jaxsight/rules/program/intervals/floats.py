"""What functions of floats make of intervals, in exact arithmetic, and never too narrow ones."""

from __future__ import annotations

import math

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.interval import (
    Applied,
    Interval,
    computes,
    corner_products,
    transfers,
)
from jaxsight.wire.program import Step

_WITHIN: dict[str, tuple[float, float]] = {
    "tanh": (-1, 1), "sin": (-1, 1), "cos": (-1, 1), "erf": (-1, 1), "sign": (-1, 1),
    "logistic": (0, 1), "erfc": (0, 2), "acos": (0, math.pi), "atan2": (-math.pi, math.pi),
    "asin": (-math.pi / 2, math.pi / 2), "atan": (-math.pi / 2, math.pi / 2),
    "cosh": (1, math.inf), "sqrt": (0, math.inf), "rsqrt": (0, math.inf),
    "population_count": (0, 64),
}  # fmt: skip


for _primitive, _ends in _WITHIN.items():
    computes(lambda *_, ends=_ends: Interval.of_floats(*ends), _primitive)


@transfers("exp", "exp2", "expm1")
def _exponential(applied: Applied, a: Interval) -> Interval:
    base = math.log(2) if applied.step.primitive == "exp2" else 1
    less = applied.step.primitive == "expm1"
    least, most = (math.exp(min(base * end, 709)) - less for end in (a.least, a.most))
    return Interval.of_floats(least, most if base * a.most < 700 else math.inf)


@transfers("log", "log2", "log1p")
def _logarithm(applied: Applied, a: Interval) -> Interval:
    base = math.log(2) if applied.step.primitive == "log2" else 1
    low, high = (end + (applied.step.primitive == "log1p") for end in (a.least, a.most))
    least = math.log(low) / base if 0 < low < math.inf else -math.inf
    return Interval.of_floats(least, math.log(high) / base if 0 < high < math.inf else math.inf)


@transfers("abs")
def _absolute(applied: Applied, a: Interval) -> Interval:
    return Interval.between(max(a.least, -a.most, 0), max(-a.least, a.most))


@transfers("floor", "ceil", "round")
def _rounded(applied: Applied, a: Interval) -> Interval:
    return Interval.of_floats(a.least - 1, a.most + 1)


@transfers("reduce_prod")
def _product(applied: Applied, a: Interval) -> Interval | None:
    return Interval.of_floats(0, 1 if a.most <= 1 else math.inf) if a.least >= 0 else None


@transfers("pow")
def _power(applied: Applied, a: Interval, b: Interval) -> Interval | None:
    return Interval.of_floats(0, math.inf) if a.least >= 0 else None


def quotient(a: Interval, b: Interval) -> Interval | None:
    """Return the interval of quotients."""
    if b.least > 0 or b.most < 0:
        products = corner_products(a, Interval.of_floats(1 / b.least, 1 / b.most))
        return Interval.of_floats(min(products), max(products))
    return Interval.of_floats(0, math.inf) if a.least >= 0 and b.least >= 0 else None


def special(applied: Applied) -> Interval | None:
    """Return bounds that hold whatever the operands are, by what an equation is part of."""
    primitive = applied.step.primitive
    if primitive == "div" and _is_share(applied):
        return Interval.of_floats(0, 1)
    if primitive == "sub" and _is_uniform(applied):
        return Interval.of_floats(0, 1)
    is_cosine = primitive in ("reduce_sum", "dot_general") and _is_cosine(applied)
    return Interval.of_floats(-1, 1) if is_cosine else None


def _is_share(applied: Applied) -> bool:
    """Whether a quotient is of numbers that are not negative by their own sum."""
    flow, (part, whole) = applied.flow, applied.step.operands
    total = flow.maker_of(whole)
    return (
        total is not None
        and total.primitive == "reduce_sum"
        and flow.alike(flow.stripped(total.operands[0]), flow.stripped(part))
        and applied.of(part).least >= 0
    )


def _is_cosine(applied: Applied) -> bool:
    """Whether a value is of products of unit vectors."""
    product: Step | None = applied.step
    if applied.step.primitive == "reduce_sum":
        product = applied.flow.producer(applied.step.operands[0])
    if product is None or product.primitive not in ("mul", "dot_general"):
        return False
    return all(_is_unit(applied.flow, operand) for operand in product.operands)


def _is_unit(flow: Flow, number: int) -> bool:
    """Whether a value is divided by its own norm, perhaps with a number added to that."""
    step = flow.maker_of(number)
    if step is None or step.primitive not in ("div", "mul"):
        return False
    norm = flow.maker_of(step.operands[1], frozenset({"add", "max", "div"}))
    if norm is None or norm.primitive not in ("sqrt", "rsqrt"):
        return False
    total = flow.maker_of(norm.operands[0], frozenset({"add", "max"}))
    if total is None or total.primitive != "reduce_sum":
        return False
    square = flow.maker_of(total.operands[0])
    return (
        square is not None
        and square.primitive in ("mul", "square", "integer_pow")
        and flow.alike(flow.stripped(square.operands[0]), flow.stripped(step.operands[0]))
    )


def _is_uniform(applied: Applied) -> bool:
    """Return whether a difference is the first of `jax.random.uniform`.

    It subtracts 1 from a number from 1 to 2 whose digits are random bits.
    """
    number, one = applied.step.operands
    bits = applied.flow.producer(number)
    is_bits = bits is not None and bits.primitive == "bitcast_convert_type"
    return is_bits and applied.flow.literal(one) == 1
