"""Operations that move elements."""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from jaxsight_source.stablehlo.evaluation import Array, OperationStep, reads
from jaxsight_source.stablehlo.operations.regions import constant_of
from jaxsight_source.stablehlo.program import UnreadableProgram


@reads("stablehlo.broadcast_in_dim")
def broadcast_in_dim(step: OperationStep) -> Array:
    return lax.broadcast_in_dim(step.operand, step.shape, step.integers("broadcast_dimensions"))


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


@reads("stablehlo.get_dimension_size")
def get_dimension_size(step: OperationStep) -> Array:
    return np.int32(step.operand.shape[step.integer("dimension")])


@reads("stablehlo.transpose")
def transpose(step: OperationStep) -> Array:
    return lax.transpose(step.operand, step.integers("permutation"))


@reads("stablehlo.reverse")
def reverse(step: OperationStep) -> Array:
    return lax.rev(step.operand, step.integers("dimensions"))


@reads("stablehlo.concatenate")
def concatenate(step: OperationStep) -> Array:
    return lax.concatenate(step.operands, step.integer("dimension"))


@reads("stablehlo.iota")
def iota(step: OperationStep) -> Array:
    return lax.broadcasted_iota(step.dtype, step.shape, step.integer("iota_dimension"))


@reads("stablehlo.pad")
def pad(step: OperationStep) -> Array:
    padding = zip(
        step.integers("edge_padding_low"),
        step.integers("edge_padding_high"),
        step.integers("interior_padding"),
        strict=True,
    )
    x, value = step.operands
    return lax.pad(x, value, list(padding))


@reads("stablehlo.slice")
def slice_(step: OperationStep) -> Array:
    strides = step.integers("strides")
    return lax.slice(
        step.operand,
        step.integers("start_indices"),
        step.integers("limit_indices"),
        None if set(strides) <= {1} else strides,
    )


@reads("stablehlo.dynamic_slice")
def dynamic_slice(step: OperationStep) -> Array:
    x, *starts = step.operands
    return lax.dynamic_slice_p.bind(x, *starts, slice_sizes=step.integers("slice_sizes"))


@reads("stablehlo.dynamic_update_slice")
def dynamic_update_slice(step: OperationStep) -> Array:
    return lax.dynamic_update_slice_p.bind(*step.operands)
