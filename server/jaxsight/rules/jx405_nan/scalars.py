"""The primitives at a point: their values, where a slope is infinite, and what undoes them.

Numbers are Python's floats, which follow IEEE 754 where Python raises. Slopes are those of the
derivative rules in `jax/_src/lax/lax.py` and `special.py`: a logarithm of a negative number is NaN
and has a slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from jaxsight.wire.primitives import MOVES, REDUCTIONS

NAN, INF = math.nan, math.inf


def over(a: float, b: float) -> float:
    """Return a quotient."""
    if b == 0:
        return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function that gives NaN where Python's raises, and infinity where it overflows."""

    def guarded(*operands: float) -> float:
        try:
            return function(*operands)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return guarded


def power(a: float, b: float) -> float:
    """Return a power."""
    if a == 0 and b < 0:
        return INF
    return NAN if a < 0 and not b.is_integer() else _guarded(math.pow)(a, b)


def _log(x: float) -> float:
    return -INF if x == 0 else _guarded(math.log)(x)


_exp, _sqrt = _guarded(math.exp), _guarded(math.sqrt)
VALUES: Mapping[str, Callable[..., float]] = {
    "abs": abs, "add": lambda a, b: a + b, "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": over, "neg": lambda x: -x,
    "max": max, "min": min, "clamp": lambda low, x, high: min(max(x, low), high),
    "pow": power, "square": lambda x: x * x, "sqrt": _sqrt, "rsqrt": lambda x: over(1, _sqrt(x)),
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x), "exp": _exp,
    "exp2": lambda x: power(2.0, x), "expm1": _guarded(math.expm1), "log": _log,
    "log2": lambda x: _log(x) / math.log(2), "log1p": lambda x: _log(1 + x),
    "logistic": lambda x: over(1, 1 + _exp(-x)), "tanh": math.tanh,
    "sin": _guarded(math.sin), "cos": _guarded(math.cos), "tan": _guarded(math.tan),
    "asin": _guarded(math.asin), "acos": _guarded(math.acos), "atan": math.atan,
    "atan2": math.atan2, "cosh": _guarded(math.cosh), "acosh": _guarded(math.acosh),
    "erf": math.erf, "erfc": math.erfc, "is_finite": lambda x: float(math.isfinite(x)),
    "eq": lambda a, b: float(a == b), "ne": lambda a, b: float(a != b),
    "lt": lambda a, b: float(a < b), "le": lambda a, b: float(a <= b),
    "gt": lambda a, b: float(a > b), "ge": lambda a, b: float(a >= b),
}  # fmt: skip
LOGICAL: Mapping[str, Callable[..., float]] = {
    "and": lambda a, b: float(bool(a) and bool(b)),
    "or": lambda a, b: float(bool(a) or bool(b)),
    "not": lambda a: float(not a),
}
"""Of booleans alone: of integers, these are of their bits."""
KEEPS = (MOVES - {"unstack", "split", "stack"}) | REDUCTIONS - {"argmax", "argmin", "reduce_prod"}
"""Primitives whose result is the first operand, or its multiple, where its elements are equal."""

UNSAFE: Mapping[str, Sequence[Mapping[int, float]]] = {
    "sqrt": ({0: 0.0}, {0: -1.0}), "rsqrt": ({0: 0.0}, {0: -1.0}), "cbrt": ({0: 0.0},),
    "pow": ({0: 0.0}, {0: -1.0}), "integer_pow": ({0: 0.0},), "div": ({1: 0.0},),
    "log": ({0: 0.0},), "log2": ({0: 0.0},), "log1p": ({0: -1.0},),
    "asin": ({0: 1.0}, {0: -1.0}, {0: 2.0}, {0: -2.0}),
    "acos": ({0: 1.0}, {0: -1.0}, {0: 2.0}, {0: -2.0}),
    "acosh": ({0: 1.0}, {0: 0.0}), "atan2": ({0: 0.0, 1: 0.0},),
    "exp": ({0: 100.0}, {0: 1e3}), "exp2": ({0: 200.0},), "expm1": ({0: 100.0}, {0: 1e3}),
    "cosh": ({0: 100.0}, {0: -100.0}),
}  # fmt: skip
"""By primitive, operands where a slope is infinite or NaN: where others are, it mostly is here."""
_STEEP: Mapping[str, Callable[..., bool]] = {
    "sqrt": lambda x: x == 0, "cbrt": lambda x: x == 0, "pow": lambda a, b: a == 0 and 0 < b < 1,
    "acos": lambda x: abs(x) == 1, "asin": lambda x: abs(x) == 1, "acosh": lambda x: x == 1,
    "atan2": lambda a, b: a == b == 0,
}  # fmt: skip
"""Where a slope is not finite although the result is."""


def is_steep(primitive: str, operands: Sequence[float], result: float) -> bool:
    """Whether a slope of an unsafe primitive is infinite or NaN at finite operands."""
    if primitive not in UNSAFE or not all(map(math.isfinite, operands)):
        return False
    if math.isnan(result):
        return not primitive.startswith("log")
    return math.isinf(result) or (primitive in _STEEP and _STEEP[primitive](*operands))


INVERSES: Mapping[str, Callable[[float], float]] = {
    "neg": lambda t: -t, "abs": abs, "square": _sqrt, "sqrt": lambda t: t * t, "exp": _log,
    "log": _exp, "log1p": _guarded(math.expm1), "expm1": lambda t: _log(1 + t),
    **dict.fromkeys(("sin", "tan", "tanh", "atan", "erf"), lambda t: NAN if t else 0.0),
}  # fmt: skip
"""The operand by the result."""
SIDES: Mapping[str, Sequence[Callable[[float, float], Sequence[float]]]] = {
    "add": (lambda t, b: [t - b], lambda t, a: [t - a]),
    "sub": (lambda t, b: [t + b], lambda t, a: [a - t]),
    "mul": (lambda t, b: [over(t, b)], lambda t, a: [over(t, a)]),
    "div": (lambda t, b: [t * b], lambda t, a: [over(a, t)]),
    "max": (lambda t, b: [t, t - 1] if t == b else [t], lambda t, a: [t, t - 1] if t == a else [t]),
    "min": (lambda t, b: [t, t + 1] if t == b else [t], lambda t, a: [t, t + 1] if t == a else [t]),
}
"""Each of two operands by the result and the other operand."""
