"""Operations on elements, and conversions."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.evaluation import READERS, Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.program import UnreadableProgram

_ACCURATE = {
    "stablehlo.cbrt": lax.cbrt,
    "stablehlo.cosine": lax.cos,
    "stablehlo.exponential": lax.exp,
    "stablehlo.exponential_minus_one": lax.expm1,
    "stablehlo.log": lax.log,
    "stablehlo.log_plus_one": lax.log1p,
    "stablehlo.logistic": lax.logistic,
    "stablehlo.rsqrt": lax.rsqrt,
    "stablehlo.sine": lax.sin,
    "stablehlo.sqrt": lax.sqrt,
    "stablehlo.tan": lax.tan,
    "stablehlo.tanh": lax.tanh,
}
"""Operations that take an accuracy."""

_PLAIN: dict[str, Callable[..., jax.Array]] = {
    "stablehlo.abs": lax.abs,
    "stablehlo.add": lax.add,
    "stablehlo.and": lax.bitwise_and,
    "stablehlo.atan2": lax.atan2,
    "stablehlo.ceil": lax.ceil,
    "stablehlo.clamp": lax.clamp,
    "stablehlo.complex": lax.complex,
    "stablehlo.count_leading_zeros": lax.clz,
    "stablehlo.divide": lax.div,
    "stablehlo.floor": lax.floor,
    "stablehlo.imag": lax.imag,
    "stablehlo.is_finite": lax.is_finite,
    "stablehlo.maximum": lax.max,
    "stablehlo.minimum": lax.min,
    "stablehlo.multiply": lax.mul,
    "stablehlo.negate": lax.neg,
    "stablehlo.not": lax.bitwise_not,
    "stablehlo.or": lax.bitwise_or,
    "stablehlo.popcnt": lax.population_count,
    "stablehlo.power": lax.pow,
    "stablehlo.real": lax.real,
    "stablehlo.remainder": lax.rem,
    "stablehlo.shift_left": lax.shift_left,
    "stablehlo.shift_right_arithmetic": lax.shift_right_arithmetic,
    "stablehlo.shift_right_logical": lax.shift_right_logical,
    "stablehlo.sign": lax.sign,
    "stablehlo.subtract": lax.sub,
    "stablehlo.xor": lax.bitwise_xor,
    "chlo.acos": lax.acos,
    "chlo.acosh": lax.acosh,
    "chlo.asin": lax.asin,
    "chlo.asinh": lax.asinh,
    "chlo.atan": lax.atan,
    "chlo.atanh": lax.atanh,
    "chlo.bessel_i1e": lax.bessel_i1e,
    "chlo.conj": lax.conj,
    "chlo.cosh": lax.cosh,
    "chlo.digamma": lax.digamma,
    "chlo.erf": lax.erf,
    "chlo.erf_inv": lax.erf_inv,
    "chlo.erfc": lax.erfc,
    "chlo.lgamma": lax.lgamma,
    "chlo.next_after": lax.nextafter,
    "chlo.polygamma": lax.polygamma,
    "chlo.sinh": lax.sinh,
    "chlo.square": lax.square,
    "chlo.tan": lax.tan,
    "chlo.zeta": lax.zeta,
}
if hasattr(lax, "mulhi"):  # since JAX 0.10
    _PLAIN["chlo.mulhi"] = lax.mulhi

_BOOLEAN = {
    "stablehlo.add": lax.bitwise_or,
    "stablehlo.maximum": lax.bitwise_or,
    "stablehlo.minimum": lax.bitwise_and,
    "stablehlo.multiply": lax.bitwise_and,
}
"""What arithmetic does to predicates (https://openxla.org/stablehlo/spec#add)."""

COMPARISONS = {
    "EQ": lax.eq,
    "NE": lax.ne,
    "LT": lax.lt,
    "LE": lax.le,
    "GT": lax.gt,
    "GE": lax.ge,
}

_TOTAL = {"EQ": lax.eq_to_p, "LT": lax.lt_to_p, "LE": lax.le_to_p}


def _plain(function: Callable[..., jax.Array]) -> Callable[[OperationStep], Results]:
    return lambda step: function(*step.operands)


READERS.update({name: _plain(function) for name, function in _PLAIN.items()})


def elementwise(name: str) -> Callable[..., jax.Array] | None:
    """Return the function of an operation on elements without attributes."""
    return _PLAIN.get(name)


@reads(*_ACCURATE)
def accurate(step: OperationStep) -> Array:
    function = _ACCURATE[step.operation.name]
    if not step.has("result_accuracy"):
        return function(*step.operands)
    told = dialect.ResultAccuracyAttr(step.attribute("result_accuracy"))
    mode = attributes.word(told.mode)
    if mode == "DEFAULT":
        return function(*step.operands)
    if mode == "HIGHEST":
        return function(*step.operands, accuracy=lax.AccuracyMode.HIGHEST)
    tolerance = lax.Tolerance(atol=told.atol, rtol=told.rtol, ulps=told.ulps)
    return function(*step.operands, accuracy=tolerance)


@reads(*_BOOLEAN)
def arithmetic(step: OperationStep) -> Array:
    name = step.operation.name
    same = step.dtype == bool and name in ("stablehlo.add", "stablehlo.multiply")
    return (_BOOLEAN if same else _PLAIN)[name](*step.operands)


@reads("stablehlo.compare")
def compare(step: OperationStep) -> Array:
    direction, (left, right) = step.word("comparison_direction"), step.operands
    if step.word("compare_type") != "TOTALORDER":
        return COMPARISONS[direction](left, right)
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


@reads("chlo.constant_like")
def constant_like(step: OperationStep) -> Array:
    value = str(step.attribute("value")).partition(" ")[0]
    return lax.full_like(step.operand, float(value))


@reads("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf")
def is_infinite(step: OperationStep) -> Array:
    x = step.operand
    infinity = lax.full_like(x, float("inf"))
    if step.operation.name == "chlo.is_inf":
        return lax.eq(lax.abs(x), infinity)
    return lax.eq(x, infinity if step.operation.name == "chlo.is_pos_inf" else lax.neg(infinity))


@reads("stablehlo.optimization_barrier")
def optimization_barrier(step: OperationStep) -> Results:
    return lax.optimization_barrier(step.operands)
