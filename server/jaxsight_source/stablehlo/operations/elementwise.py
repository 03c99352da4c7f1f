"""Operations on elements, and conversions."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect as stablehlo
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.program import UnreadableProgram

_RENAMED = {
    "and": "bitwise_and",
    "cosine": "cos",
    "count_leading_zeros": "clz",
    "divide": "div",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "maximum": "max",
    "minimum": "min",
    "multiply": "mul",
    "negate": "neg",
    "next_after": "nextafter",
    "not": "bitwise_not",
    "or": "bitwise_or",
    "popcnt": "population_count",
    "power": "pow",
    "remainder": "rem",
    "sine": "sin",
    "subtract": "sub",
    "xor": "bitwise_xor",
}
"""Operations, without their dialect, that have other names in `jax.lax`."""

_SAME_NAMES = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i1e",
    "cbrt", "ceil", "clamp", "complex", "conj", "cosh", "digamma", "erf", "erf_inv", "erfc",
    "floor", "imag", "is_finite", "lgamma", "log", "logistic", "mulhi", "polygamma", "real",
    "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sinh",
    "sqrt", "square", "tan", "tanh", "zeta",
]  # fmt: skip

_PLAIN: dict[str, Callable[..., jax.Array]] = {
    f"{dialect}.{operation}": getattr(lax, name)
    for operation, name in (_RENAMED | {name: name for name in _SAME_NAMES}).items()
    for dialect in ("stablehlo", "chlo")
    if hasattr(lax, name)  # `mulhi` since JAX 0.10
}

_OF_PREDICATES = {"stablehlo.add": lax.bitwise_or, "stablehlo.multiply": lax.bitwise_and}
"""What arithmetic does to predicates (https://openxla.org/stablehlo/spec#add)."""

_TOTAL = {"EQ": lax.eq_to_p, "LT": lax.lt_to_p, "LE": lax.le_to_p}


def elementwise(name: str) -> Callable[..., jax.Array] | None:
    """Return the function of an operation on elements without attributes."""
    return _PLAIN.get(name)


def _applied(step: OperationStep) -> Array:
    """Return a function of elements, some of which take an accuracy."""
    function = _PLAIN[step.operation.name]
    if not step.has("result_accuracy"):
        return function(*step.operands)
    told = stablehlo.ResultAccuracyAttr(step.attribute("result_accuracy"))
    mode = attributes.word(told.mode)
    if mode == "DEFAULT":
        return function(*step.operands)
    if mode == "HIGHEST":
        return function(*step.operands, accuracy=lax.AccuracyMode.HIGHEST)
    tolerance = lax.Tolerance(atol=told.atol, rtol=told.rtol, ulps=told.ulps)
    return function(*step.operands, accuracy=tolerance)


reads(*_PLAIN)(_applied)


@reads(*_OF_PREDICATES)
def arithmetic(step: OperationStep) -> Array:
    functions = _OF_PREDICATES if step.dtype == bool else _PLAIN
    return functions[step.operation.name](*step.operands)


@reads("stablehlo.compare")
def compare(step: OperationStep) -> Array:
    direction, (left, right) = step.word("comparison_direction"), step.operands
    if step.word("compare_type") != "TOTALORDER":
        return getattr(lax, direction.lower())(left, right)
    if direction in ("GT", "GE"):
        direction, left, right = direction.replace("G", "L"), right, left
    if direction not in _TOTAL:
        raise UnreadableProgram(f"expected a total order, got {direction}")
    return _TOTAL[direction].bind(left, right)


@reads("stablehlo.constant")
def constant(step: OperationStep) -> Array:
    found = attributes.constant(step.operation)
    return found if found.shape else found[()]


@reads("stablehlo.convert")
def convert(step: OperationStep) -> Array:
    return lax.convert_element_type(step.operand, step.dtype)


@reads("stablehlo.bitcast_convert")
def bitcast_convert(step: OperationStep) -> Array:
    return lax.bitcast_convert_type(step.operand, step.dtype)


@reads("stablehlo.reduce_precision")
def reduce_precision(step: OperationStep) -> Array:
    return lax.reduce_precision(
        step.operand, step.integer("exponent_bits"), step.integer("mantissa_bits")
    )


@reads("stablehlo.round_nearest_afz")
def round_away(step: OperationStep) -> Array:
    return lax.round(step.operand, lax.RoundingMethod.AWAY_FROM_ZERO)


@reads("stablehlo.round_nearest_even")
def round_even(step: OperationStep) -> Array:
    return lax.round(step.operand, lax.RoundingMethod.TO_NEAREST_EVEN)


@reads("stablehlo.select")
def select(step: OperationStep) -> Array:
    predicate, on_true, on_false = step.operands
    return lax.select_n(predicate, on_false, on_true)


@reads("stablehlo.optimization_barrier")
def optimization_barrier(step: OperationStep) -> Results:
    return lax.optimization_barrier(step.operands)
