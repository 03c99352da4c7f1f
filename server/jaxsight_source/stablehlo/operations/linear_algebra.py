"""Products, convolutions, transforms, decompositions and random bits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.program import UnreadableProgram


def _precision(step: OperationStep) -> tuple[lax.Precision, lax.Precision] | None:
    """Return the precision of two operands; None where it is the default of both."""
    name = "precision_config"
    if not step.has(name):
        return None
    words = [attributes.word(each) for each in step.attribute(name)]
    found = [getattr(lax.Precision, word) for word in words]
    if not found or set(found) == {lax.Precision.DEFAULT}:
        return None
    return found[0], found[1]


@reads("stablehlo.dot", "stablehlo.dot_general")
def dot_general(step: OperationStep) -> Array:
    lhs, rhs = step.operands
    dimensions: Any = ((lhs.ndim - 1,), (0,)), ((), ())
    if step.operation.name == "stablehlo.dot_general":
        numbers = dialect.DotDimensionNumbers(step.attribute("dot_dimension_numbers"))
        dimensions = tuple(
            tuple(tuple(getattr(numbers, f"{side}_{role}_dimensions")) for side in ("lhs", "rhs"))
            for role in ("contracting", "batching")
        )
    return lax.dot_general(
        lhs,
        rhs,
        dimensions,
        precision=_algorithm(step) if step.has("algorithm") else _precision(step),
        preferred_element_type=step.dtype,
    )


def _algorithm(step: OperationStep) -> lax.DotAlgorithm:
    told = dialect.DotAlgorithm(step.attribute("algorithm"))
    return lax.DotAlgorithm(
        lhs_precision_type=attributes.dtype_of(told.lhs_precision_type),
        rhs_precision_type=attributes.dtype_of(told.rhs_precision_type),
        accumulation_type=attributes.dtype_of(told.accumulation_type),
        lhs_component_count=told.lhs_component_count,
        rhs_component_count=told.rhs_component_count,
        num_primitive_operations=told.num_primitive_operations,
        allow_imprecise_accumulation=told.allow_imprecise_accumulation,
    )


_SIDES = (
    ("input", "batch", "feature"),
    ("kernel", "output_feature", "input_feature"),
    ("output", "batch", "feature"),
)


@reads("stablehlo.convolution")
def convolution(step: OperationStep) -> Array:
    numbers = dialect.ConvDimensionNumbers(step.attribute("dimension_numbers"))
    lhs, rhs = step.operands
    spatial = len(numbers.input_spatial_dimensions)
    ones = (1,) * spatial
    reversal = step.integers("window_reversal")
    reversed_axes = [
        axis
        for axis, is_reversed in zip(numbers.kernel_spatial_dimensions, reversal, strict=False)
        if is_reversed
    ]
    if reversed_axes:
        rhs = lax.rev(rhs, reversed_axes)
    padding = step.integers("padding")
    return lax.conv_general_dilated(
        lhs,
        rhs,
        step.integers("window_strides") or ones,
        [*zip(padding[::2], padding[1::2], strict=True)] or [(0, 0)] * spatial,
        lhs_dilation=step.integers("lhs_dilation") or ones,
        rhs_dilation=step.integers("rhs_dilation") or ones,
        dimension_numbers=lax.ConvDimensionNumbers(
            *(
                (
                    getattr(numbers, f"{side}_{first}_dimension"),
                    getattr(numbers, f"{side}_{second}_dimension"),
                    *getattr(numbers, f"{side}_spatial_dimensions"),
                )
                for side, first, second in _SIDES
            )
        ),
        feature_group_count=step.integer("feature_group_count"),
        batch_group_count=step.integer("batch_group_count"),
        precision=_precision(step),
        preferred_element_type=step.dtype,
    )


@reads("stablehlo.fft")
def fft(step: OperationStep) -> Array:
    kind = getattr(lax.FftType, step.word("fft_type"))
    return lax.fft_p.bind(step.operand, fft_type=kind, fft_lengths=step.integers("fft_length"))


@reads("stablehlo.cholesky")
def cholesky(step: OperationStep) -> Array:
    x = step.operand
    if not step.flag("lower"):
        x = jnp.conj(jnp.swapaxes(x, -1, -2))
    found = lax.linalg.cholesky(x, symmetrize_input=False)
    return found if step.flag("lower") else jnp.conj(jnp.swapaxes(found, -1, -2))


@reads("stablehlo.triangular_solve")
def triangular_solve(step: OperationStep) -> Array:
    transpose = step.word("transpose_a")
    return lax.linalg.triangular_solve(
        *step.operands,
        left_side=step.flag("left_side"),
        lower=step.flag("lower"),
        transpose_a=transpose in ("TRANSPOSE", "ADJOINT"),
        conjugate_a=transpose == "ADJOINT",
        unit_diagonal=step.flag("unit_diagonal"),
    )


@reads("stablehlo.rng_bit_generator")
def rng_bit_generator(step: OperationStep) -> Results:
    words = {
        "DEFAULT": lax.RandomAlgorithm.RNG_DEFAULT,
        "PHILOX": lax.RandomAlgorithm.RNG_PHILOX,
        "THREE_FRY": lax.RandomAlgorithm.RNG_THREE_FRY,
    }
    bits = step.structs[1]
    algorithm = words[step.word("rng_algorithm")]
    return lax.rng_bit_generator(step.operand, bits.shape, bits.dtype, algorithm)


@reads("stablehlo.rng")
def rng(step: OperationStep) -> Array:
    if step.word("rng_distribution") != "UNIFORM":
        raise UnreadableProgram("expected a uniform distribution, the only one that JAX has")
    return lax.rng_uniform(step.operands[0], step.operands[1], step.shape)
