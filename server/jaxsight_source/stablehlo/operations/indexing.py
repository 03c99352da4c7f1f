"""Gather, scatter and sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect, ir
from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.comparators import keys_of
from jaxsight_source.stablehlo.operations.regions import owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_SCATTERS = {
    "stablehlo.add": lax.scatter_add,
    "stablehlo.subtract": lax.scatter_sub,
    "stablehlo.multiply": lax.scatter_mul,
    "stablehlo.minimum": lax.scatter_min,
    "stablehlo.maximum": lax.scatter_max,
}


def _index_vectors(indices: Array, dimension: int) -> Array:
    """Return indices with the dimension of index vectors last, as JAX has it."""
    if dimension == indices.ndim:
        return lax.reshape(indices, (*indices.shape, 1))
    order = [axis for axis in range(indices.ndim) if axis != dimension]
    return indices if dimension == indices.ndim - 1 else lax.transpose(indices, (*order, dimension))


@reads("stablehlo.gather")
def gather(step: OperationStep) -> Array:
    numbers = dialect.GatherDimensionNumbers(step.attribute("dimension_numbers"))
    x, indices = step.operands
    return lax.gather(
        x,
        _index_vectors(indices, numbers.index_vector_dim),
        lax.GatherDimensionNumbers(
            offset_dims=tuple(numbers.offset_dims),
            collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
            start_index_map=tuple(numbers.start_index_map),
            operand_batching_dims=tuple(numbers.operand_batching_dims),
            start_indices_batching_dims=tuple(numbers.start_indices_batching_dims),
        ),
        step.integers("slice_sizes"),
        indices_are_sorted=step.flag("indices_are_sorted"),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,  # lowers to this operation alone
    )


@reads("stablehlo.scatter")
def scatter(step: OperationStep) -> Results:
    if len(step.operands) > 3:
        raise UnreadableProgram("expected one operand, as in JAX")
    x, indices, updates = step.operands
    told = dialect.ScatterDimensionNumbers(step.attribute("scatter_dimension_numbers"))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(told.update_window_dims),
        inserted_window_dims=tuple(told.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(told.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(told.input_batching_dims),
        scatter_indices_batching_dims=tuple(told.scatter_indices_batching_dims),
    )
    indices = _index_vectors(indices, told.index_vector_dim)
    options: dict[str, Any] = {
        "indices_are_sorted": step.flag("indices_are_sorted"),
        "unique_indices": step.flag("unique_indices"),
        "mode": lax.GatherScatterMode.FILL_OR_DROP,  # what the operation does out of bounds
    }
    if [*step.block(0).arguments[1].uses]:
        return _updating(step.block(0))(x, indices, updates, numbers, **options)
    run, zero = step.region(0), np.zeros((), x.dtype)
    return lax.scatter_apply(
        x,
        indices,
        lambda value: run(value, zero)[0],
        numbers,
        update_shape=updates.shape,
        **options,
    )


def _updating(block: ir.Block) -> Callable[..., Array]:
    """Return the scatter whose region this is."""
    element, update = block.arguments
    (returned,) = [*block.operations][-1].operation.operands
    if returned == update:
        return lax.scatter
    owner = owner_of(returned)
    if owner is not None and owner.name in _SCATTERS:
        operands, is_ordered = [*owner.operands], owner.name == "stablehlo.subtract"
        if operands == [element, update] or (operands == [update, element] and not is_ordered):
            return _SCATTERS[owner.name]
    raise UnreadableProgram("expected add, sub, mul, min, max or a function of the element")


@reads("stablehlo.sort")
def sort(step: OperationStep) -> Results:
    keys = keys_of(step.region(0), [operand.dtype for operand in step.operands])
    computed = [key.array(step.operands[key.operand]) for key in keys]
    is_first = [key.is_plain and key.operand == place for place, key in enumerate(keys)]
    operands = step.operands if all(is_first) else (*computed, *step.operands)
    found = lax.sort(
        operands,
        dimension=step.integer("dimension"),
        is_stable=step.flag("is_stable"),
        num_keys=len(keys),
    )
    return found[-len(step.operands) :]
