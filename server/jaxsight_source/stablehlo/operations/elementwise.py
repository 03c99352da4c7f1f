"""Operations on elements, and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect as stablehlo
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.evaluation import READERS, Array, OperationStep, reads
from jaxsight_source.stablehlo.operations.regions import constant_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_RENAMED = {
    "and": "bitwise_and", "cosine": "cos", "count_leading_zeros": "clz", "divide": "div",
    "exponential": "exp", "exponential_minus_one": "expm1", "log_plus_one": "log1p",
    "maximum": "max", "minimum": "min", "multiply": "mul", "negate": "neg",
    "next_after": "nextafter", "not": "bitwise_not", "or": "bitwise_or",
    "popcnt": "population_count", "power": "pow", "remainder": "rem", "sine": "sin",
    "subtract": "sub", "xor": "bitwise_xor",
}  # fmt: skip
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

_PADS = "edge_padding_low", "edge_padding_high", "interior_padding"
_TOTAL = {"EQ": lax.eq_to_p, "LT": lax.lt_to_p, "LE": lax.le_to_p}


READERS |= {
    "chlo.top_k": lambda step: lax.top_k(step.operand, step.integer("k")),
    "stablehlo.bitcast_convert": lambda step: lax.bitcast_convert_type(step.operand, step.dtype),
    "stablehlo.broadcast_in_dim": lambda step: lax.broadcast_in_dim(
        step.operand, step.shape, step.integers("broadcast_dimensions")
    ),
    "stablehlo.concatenate": lambda step: lax.concatenate(step.operands, step.integer("dimension")),
    "stablehlo.constant": lambda step: attributes.constant(step.operation)[()],
    "stablehlo.convert": lambda step: lax.convert_element_type(step.operand, step.dtype),
    "stablehlo.dynamic_slice": lambda step: lax.dynamic_slice_p.bind(
        *step.operands, slice_sizes=step.integers("slice_sizes")
    ),
    "stablehlo.dynamic_update_slice": lambda step: lax.dynamic_update_slice_p.bind(*step.operands),
    "stablehlo.get_dimension_size": lambda step: np.int32(
        step.operand.shape[step.integer("dimension")]
    ),
    "stablehlo.if": lambda step: lax.cond(step.operand, step.region(0), step.region(1)),
    "stablehlo.iota": lambda step: lax.broadcasted_iota(
        step.dtype, step.shape, step.integer("iota_dimension")
    ),
    "stablehlo.optimization_barrier": lambda step: lax.optimization_barrier(step.operands),
    "stablehlo.pad": lambda step: lax.pad(
        step.operand, step.operands[1], [*zip(*map(step.integers, _PADS), strict=True)]
    ),
    "stablehlo.reduce_precision": lambda step: lax.reduce_precision(
        step.operand, step.integer("exponent_bits"), step.integer("mantissa_bits")
    ),
    "stablehlo.reverse": lambda step: lax.rev(step.operand, step.integers("dimensions")),
    "stablehlo.round_nearest_afz": lambda step: lax.round(
        step.operand, lax.RoundingMethod.AWAY_FROM_ZERO
    ),
    "stablehlo.round_nearest_even": lambda step: lax.round(
        step.operand, lax.RoundingMethod.TO_NEAREST_EVEN
    ),
    "stablehlo.select": lambda step: lax.select_n(step.operand, *step.operands[:0:-1]),
    "stablehlo.transpose": lambda step: lax.transpose(step.operand, step.integers("permutation")),
}


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


@reads("stablehlo.reshape")
def reshape(step: OperationStep) -> Array:
    shape = step.shape
    unknown = [axis for axis, size in enumerate(shape) if size < 0]
    if len(unknown) == 1:  # the size that is left
        known = math.prod(size for size in shape if size >= 0)
        shape = tuple(step.operand.size // known if size < 0 else size for size in shape)
    return lax.reshape(step.operand, shape)


@reads("stablehlo.set_dimension_size")
def set_dimension_size(step: OperationStep) -> Array:
    """Return the part that is left of an array whose size changes up to a bound."""
    size = constant_of(step.operation.operands[1])
    if size is None:
        raise UnreadableProgram("JAX has no sizes that are computed; expected a constant one")
    return lax.slice_in_dim(step.operand, 0, int(size), axis=step.integer("dimension"))


@reads("stablehlo.slice")
def slice_(step: OperationStep) -> Array:
    strides = step.integers("strides")
    return lax.slice(
        step.operand,
        step.integers("start_indices"),
        step.integers("limit_indices"),
        None if set(strides) <= {1} else strides,
    )
