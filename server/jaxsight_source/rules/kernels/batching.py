"""Kernels with an axis of the grid that `vmap` added, as JAX does in its rule of `pallas_call`."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxsight_source.compat.pallas import KernelBlock, KernelCall
from jaxsight_source.errors import Unsourceable
from jaxsight_source.writing.results import with_parts


def unbatched(kernel: KernelCall) -> tuple[KernelCall, list[int | None]]:
    """Return a kernel without the first axis of its grid, and the mapped axes of its inputs.

    Raises:
        Unsourceable: if that axis is no axis of `vmap`.
    """
    if kernel.batched[0] != 0 or kernel.grid[0] is None:
        raise Unsourceable("pallas_call", "vmap added an axis inside its grid")
    inputs, outputs = (
        [_unmapped(each) for each in part] for part in (kernel.inputs, kernel.outputs)
    )
    if any(axis != 0 for _, axis in outputs):
        raise Unsourceable("pallas_call", "vmap added an axis other than the results' first")
    inside = dataclasses.replace(
        kernel,
        grid=kernel.grid[1:],
        batched=tuple(axis - 1 for axis in kernel.batched[1:]),
        inputs=tuple(block for block, _ in inputs),
        outputs=tuple(block for block, _ in outputs),
    )
    return inside, [None] * kernel.prefetched + [axis for _, axis in inputs]


def _unmapped(block: KernelBlock) -> tuple[KernelBlock, int | None]:
    """Return a block without the mapped axis, and this axis; None if it is not mapped."""
    first, *others = block.index_map.jaxpr.invars
    results = list(block.index_map.jaxpr.outvars)
    axis = next((axis for axis, atom in enumerate(results) if atom is first), None)
    if axis is None:
        index_map = with_parts(block.index_map, invars=others)
        return dataclasses.replace(block, index_map=index_map), None
    if type(block.dimensions[axis]).__name__ != "Squeezed":
        raise Unsourceable("pallas_call", "vmap added an axis that the kernel sees")
    array: Any = block.array
    without = {
        "index_map": with_parts(block.index_map, invars=others, outvars=_left_out(results, axis)),
        "dimensions": _left_out(block.dimensions, axis),
        "array": array.update(shape=_left_out(array.shape, axis)),
    }
    return dataclasses.replace(block, **without), axis


def _left_out(items: Any, position: int) -> tuple[Any, ...]:
    return (*items[:position], *items[position + 1 :])
