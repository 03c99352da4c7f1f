"""Gather, scatter and sort."""

from __future__ import annotations

from collections.abc import Callable

from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect
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
    """Return a scatter of each operand, if its updates depend on it alone."""
    count = len(step.operands) // 2
    told = dialect.ScatterDimensionNumbers(step.attribute("scatter_dimension_numbers"))
    indices = step.operands[count]
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(told.update_window_dims),
        inserted_window_dims=tuple(told.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(told.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(told.input_batching_dims),
        scatter_indices_batching_dims=tuple(told.scatter_indices_batching_dims),
    )
    indices = _index_vectors(indices, told.index_vector_dim)
    step.evaluation.expanded |= count > 1
    if count == 1 and (found := _scatter_apply(step, step.operand, indices, numbers)) is not None:
        return found
    return [
        _update(step, place, count)(
            step.operands[place],
            indices,
            step.operands[count + 1 + place],
            numbers,
            indices_are_sorted=step.flag("indices_are_sorted"),
            unique_indices=step.flag("unique_indices"),
            mode=lax.GatherScatterMode.FILL_OR_DROP,  # what the operation does out of bounds
        )
        for place in range(count)
    ]


def _update(step: OperationStep, place: int, count: int) -> Callable[..., Array]:
    """Return the scatter of an operand, by what the region returns for it."""
    block = step.block(0)
    element, update = block.arguments[place], block.arguments[count + place]
    returned = [*block.operations][-1].operation.operands[place]
    if returned == update:
        return lax.scatter
    owner = owner_of(returned)
    function = _SCATTERS.get(owner.name) if owner is not None else None
    operands = [*owner.operands] if owner is not None else []
    is_ordered = owner is None or owner.name == "stablehlo.subtract"
    if function is None or not (
        operands == [element, update] or (operands == [update, element] and not is_ordered)
    ):
        raise UnreadableProgram("expected add, sub, mul, min, max or a function of the element")
    return function


def _scatter_apply(
    step: OperationStep, x: Array, indices: Array, numbers: lax.ScatterDimensionNumbers
) -> Array | None:
    """Return a scatter that applies a function of the element alone (`lax.scatter_apply`)."""
    element, update = step.block(0).arguments
    if [*update.uses]:
        return None
    run, zero = step.region(0), step.operands[2]
    del element
    return lax.scatter_apply(
        x,
        indices,
        lambda value: run(value, lax.full((), 0, x.dtype))[0],
        numbers,
        update_shape=zero.shape,
        indices_are_sorted=step.flag("indices_are_sorted"),
        unique_indices=step.flag("unique_indices"),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


@reads("stablehlo.sort")
def sort(step: OperationStep) -> Results:
    keys = keys_of(step.block(0))
    computed = [key.array(step) for key in keys]
    is_first = [key.is_plain and key.operand == place for place, key in enumerate(keys)]
    operands = step.operands if all(is_first) else (*computed, *step.operands)
    found = lax.sort(
        operands,
        dimension=step.integer("dimension"),
        is_stable=step.flag("is_stable"),
        num_keys=len(keys),
    )
    return found[-len(step.operands) :]
