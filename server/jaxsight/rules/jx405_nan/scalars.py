"""The primitives at a point: their values, and the slopes that JAX multiplies cotangents by.

Numbers are Python's floats, which follow IEEE 754 where Python raises. The slopes are those of the
derivative rules in `jax/_src/lax/lax.py` and `special.py`, also where they are infinite or NaN:
that decides whether zero times a slope is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxsight.wire.primitives import MOVES, REDUCTIONS
from jaxsight.wire.program import Step

NAN, INF = math.nan, math.inf
Slopes = Sequence[float | None]
"""One for each operand; `None` where no cotangent flows."""


def over(a: float, b: float) -> float:
    """Return a quotient."""
    if b == 0:
        return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def _guarded(function: Callable[..., float], overflow: float = INF) -> Callable[..., float]:
    """Return a function that gives NaN where Python's raises, and infinity where it overflows."""

    def guarded(*operands: float) -> float:
        try:
            return function(*operands)
        except OverflowError:
            return overflow
        except ValueError:
            return NAN

    return guarded


def _power(a: float, b: float) -> float:
    if a == 0 and b < 0:
        return INF
    if a < 0 and not b.is_integer():
        return NAN
    return _guarded(math.pow)(a, b)


def _log(x: float) -> float:
    return -INF if x == 0 else _guarded(math.log)(x)


def _extreme(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: NAN if math.isnan(a) or math.isnan(b) else choose(a, b)


_exp, _sqrt = _guarded(math.exp), _guarded(math.sqrt)
_sinh = _guarded(math.sinh)
_VALUES: dict[str, Callable[..., float]] = {
    "abs": abs, "add": lambda a, b: a + b, "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": over, "neg": lambda x: -x,
    "max": _extreme(max), "min": _extreme(min), "rem": _guarded(math.fmod), "pow": _power,
    "square": lambda x: x * x, "one_minus_square": lambda x: (1 + x) * (1 - x),
    "sqrt": _sqrt, "rsqrt": lambda x: over(1, _sqrt(x)),
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x), "exp": _exp,
    "exp2": lambda x: _power(2.0, x), "expm1": _guarded(math.expm1), "log": _log,
    "log2": lambda x: _log(x) / math.log(2), "log1p": lambda x: _log(1 + x),
    "logistic": lambda x: over(1, 1 + _exp(-x)), "tanh": math.tanh,
    "sin": _guarded(math.sin), "cos": _guarded(math.cos), "tan": _guarded(math.tan),
    "asin": _guarded(math.asin), "acos": _guarded(math.acos), "atan": math.atan,
    "atan2": math.atan2, "sinh": lambda x: math.copysign(1, x) * _sinh(abs(x)),
    "cosh": _guarded(math.cosh), "asinh": math.asinh, "acosh": _guarded(math.acosh),
    "atanh": lambda x: math.copysign(INF, x) if abs(x) == 1 else _guarded(math.atanh)(x),
    "erf": math.erf, "erfc": math.erfc,
    "sign": lambda x: x if x == 0 or math.isnan(x) else math.copysign(1, x),
    "floor": _guarded(math.floor), "ceil": _guarded(math.ceil), "round": _guarded(round),
    "is_finite": lambda x: float(math.isfinite(x)),
    "eq": lambda a, b: float(a == b), "ne": lambda a, b: float(a != b),
    "lt": lambda a, b: float(a < b), "le": lambda a, b: float(a <= b),
    "gt": lambda a, b: float(a > b), "ge": lambda a, b: float(a >= b),
    "clamp": lambda low, x, high: NAN if math.isnan(x) else min(max(x, low), high),
}  # fmt: skip
LOGICAL: dict[str, Callable[..., float]] = {
    "and": lambda a, b: float(bool(a) and bool(b)),
    "or": lambda a, b: float(bool(a) or bool(b)),
    "xor": lambda a, b: float(bool(a) != bool(b)),
    "not": lambda a: float(not a),
}  # fmt: skip
"""Of booleans alone: of integers, these are of their bits."""


def _share(a: float, b: float) -> float:
    """Return the slope of a maximum: cotangents are shared where both are equal."""
    return 1.0 if a > b else 0.5 if a == b else 0.0


def _inverse_root(x: float) -> float:
    return over(1, _sqrt(x))


_SLOPES: dict[str, Callable[..., Slopes]] = {
    "abs": lambda x, r: (_VALUES["sign"](x),),
    "add": lambda a, b, r: (1, 1), "add_any": lambda a, b, r: (1, 1),
    "sub": lambda a, b, r: (1, -1), "mul": lambda a, b, r: (b, a),
    "div": lambda a, b, r: (over(1, b), -a * _power(b, -2.0)), "neg": lambda x, r: (-1,),
    "max": lambda a, b, r: (_share(a, b), _share(b, a)),
    "min": lambda a, b, r: (_share(b, a), _share(a, b)),
    "rem": lambda a, b, r: (1, -_guarded(math.trunc)(over(a, b))),
    "pow": lambda a, b, r: (b * _power(a, b - 1), _log(a or 1.0) * r),
    "square": lambda x, r: (2 * x,), "one_minus_square": lambda x, r: (-2 * x,),
    "sqrt": lambda x, r: (over(0.5, r),),
    "rsqrt": lambda x, r: (-0.5 * over(r, x),), "cbrt": lambda x, r: (_power(r, -2.0) / 3,),
    "exp": lambda x, r: (r,), "exp2": lambda x, r: (math.log(2) * r,),
    "expm1": lambda x, r: (r + 1,), "log": lambda x, r: (over(1, x),),
    "log2": lambda x, r: (over(1, x * math.log(2)),),
    "log1p": lambda x, r: (over(1, 1 + x),), "logistic": lambda x, r: (r * (1 - r),),
    "tanh": lambda x, r: (1 - r * r,), "sin": lambda x, r: (_VALUES["cos"](x),),
    "cos": lambda x, r: (-_VALUES["sin"](x),), "tan": lambda x, r: (1 + r * r,),
    "asin": lambda x, r: (_inverse_root(1 - x * x),),
    "acos": lambda x, r: (-_inverse_root(1 - x * x),),
    "atan": lambda x, r: (over(1, 1 + x * x),),
    "atan2": lambda a, b, r: (over(b, a * a + b * b), over(-a, a * a + b * b)),
    "sinh": lambda x, r: (_VALUES["cosh"](x),), "cosh": lambda x, r: (_VALUES["sinh"](x),),
    "asinh": lambda x, r: (_inverse_root(x * x + 1),),
    "acosh": lambda x, r: (_inverse_root((x - 1) * (x + 1)),),
    "atanh": lambda x, r: (over(1, 1 + x) * over(1, 1 - x),),
    "erf": lambda x, r: (_exp(-x * x),), "erfc": lambda x, r: (-_exp(-x * x),),
    "clamp": lambda low, x, high, r: (None, 1 if low < x < high else None, None),
}  # fmt: skip
"""By the operands and the result. Other primitives have no slopes."""
PICKS_ANY = frozenset({"gather", "dynamic_slice", "sort"})
KEEPS = (MOVES - {"unstack", "split", "stack"}) | PICKS_ANY
"""Primitives whose result is the first operand, where all elements of that are equal."""
REDUCES = REDUCTIONS - {"argmax", "argmin"} | {"dot_general"}
RUN = frozenset({*_VALUES, *KEEPS, *REDUCES, "select_n", "integer_pow"})
"""Primitives that are run; logical ones, too, if they are of booleans."""
STEEP = frozenset(
    {
        "acos", "acosh", "asin", "atan2", "atanh", "cbrt", "cosh", "div", "exp", "exp2", "expm1",
        "integer_pow", "log", "log1p", "log2", "pow", "rem", "rsqrt", "sinh", "sqrt",
    }
)  # fmt: skip
"""Primitives with an infinite slope, or a result that overflows, where their operand is finite."""


def applied(
    step: Step, count: int, *, whole: bool
) -> tuple[Callable[..., float], Callable[..., Slopes]]:
    """Return what an equation computes of its operands, arrays of equal elements, and its slopes.

    Those are computed from the operands and the result: what the cotangent of the result is
    multiplied by for each operand.

    Args:
        step: an equation of one of the primitives that are run.
        count: the elements of the first operand for each of the result, or those of a contraction.
        whole: whether the last operand, such as an exponent, has integers.
    """
    match step.primitive:
        case "select_n":
            return (
                lambda which, *cases: cases[chosen(which, len(cases))],
                lambda which, *rest: [
                    None,
                    *(float(i == chosen(which, len(rest) - 1)) for i in range(len(rest) - 1)),
                ],
            )
        case "pow" if whole:
            return _power, lambda a, b, r: (b * _power(a, b - 1) if b else 0.0, None)
        case "integer_pow" | "reduce_prod" as name:
            n = step.number("y", 1) if name == "integer_pow" else count
            factor = n if name == "integer_pow" else 1
            return (
                lambda x: _power(x, float(n)),
                lambda x, r: (factor * _power(x, float(n - 1)),),
            )
        case "reduce_sum":
            return lambda x: x * count, _one
        case "dot_general":
            return lambda a, b: a * b * count, lambda a, b, r: (b, a)
        case "stop_gradient":
            return _first, lambda x, r: (None,)
        case name if name in KEEPS or name in REDUCES:
            return _first, _one
        case name:
            return _VALUES.get(name) or LOGICAL[name], _SLOPES.get(name, lambda *_: ())


def _first(x: float, *others: float) -> float:
    return x


def _one(*_: float) -> Slopes:
    return (1.0,)


def chosen(which: float, count: int) -> int:
    """Return the index of the case that a selection shows."""
    return min(max(int(which), 0), count - 1)


def contracted(step: Step, shape: Sequence[int]) -> int:
    """Return how many products a `dot_general` adds up, by the shape of its first operand."""
    match step.parameter("dimension_numbers"):
        case (((*axes,), _), _):
            return math.prod(shape[axis] for axis in axes if isinstance(axis, int))
        case _:
            return 1
