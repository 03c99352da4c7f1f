"""The grid, blocks and scratch memory of Pallas kernels. Applies to JAX 0.8 to 0.12.

Private API used: the parameter `grid_mapping` of a `pallas_call` (a `GridMapping` with a
`BlockMapping` for each array, `jax/_src/pallas/core.py`), the classes of block dimensions by name,
and the memory spaces of references.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight_source.compat.jaxpr_types import Aval, Equation
from jaxsight_source.compat.staging import Program, opened


@dataclass(frozen=True, slots=True)
class KernelBlock:
    """How one array is cut into blocks."""

    dimensions: tuple[Any, ...]
    """For each axis, a JAX object such as `Blocked(8)`, `Squeezed()` or `Element(8)`."""
    index_map: Program
    """From the position in the grid (and the prefetched scalars) to the index of the block."""
    array: Aval
    """The whole array."""
    reference: Aval
    """The kernel's reference to the block."""
    pipeline_mode: Any
    transforms: tuple[object, ...]
    origin: str
    """JAX's name for the array: `args[0]`, `outputs`."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The block's size along each axis, 1 for one that the kernel does not see."""
        return tuple(int(getattr(each, "block_size", 1)) for each in self.dimensions)

    @property
    def is_whole(self) -> bool:
        """Whether the block is the whole array, at each position of the grid."""
        return (
            self.sizes == tuple(self.array.shape)
            and all(getattr(atom, "val", None) == 0 for atom in self.index_map.jaxpr.outvars)
            and all(type(each).__name__ == "Blocked" for each in self.dimensions)
        )


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A `pallas_call`, independent of the JAX version."""

    grid: tuple[int | None, ...]
    """The sizes of the grid; None for a size that is an operand."""
    grid_names: tuple[object, ...] | None
    prefetched: int
    """The number of operands that are in scalar memory before the kernel starts."""
    inputs: tuple[KernelBlock, ...]
    outputs: tuple[KernelBlock, ...]
    scratch: tuple[Aval, ...]
    batched: tuple[int, ...]
    """The axes of the grid that `vmap` added."""
    body: Program
    """The kernel: its inputs are the references of prefetched scalars, inputs, outputs, scratch."""
    name: str

    @property
    def blocks(self) -> tuple[KernelBlock, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def programs(self) -> int | None:
        """How often the kernel runs, if the size of the grid is known."""
        sizes = [size for size in self.grid if size is not None]
        return math.prod(sizes) if len(sizes) == len(self.grid) else None


def kernel_call(equation: Equation) -> KernelCall:
    """Read the parameters of a `pallas_call`."""
    params = equation.params
    mapping: Any = params["grid_mapping"]
    blocks = [
        KernelBlock(
            tuple(each.block_shape),
            opened(each.index_map_jaxpr),
            each.array_aval,
            each.transformed_block_aval,
            each.pipeline_mode,
            tuple(each.transforms or ()),
            str(each.origin),
        )
        for each in mapping.block_mappings
    ]
    body = opened(params["jaxpr"])
    info = getattr(body.jaxpr, "debug_info", None)
    name = params.get("name") or getattr(info, "func_name", None) or "kernel"
    return KernelCall(
        tuple(size if isinstance(size, int) else None for size in mapping.grid),
        mapping.grid_names,
        mapping.num_index_operands,
        tuple(blocks[: mapping.num_inputs]),
        tuple(blocks[mapping.num_inputs :]),
        tuple(mapping.scratch_avals),
        tuple(mapping.vmapped_dims),
        body,
        str(name),
    )


def memory_space(aval: Aval) -> Any:
    """Return the memory space of a reference or an array; None for the default one."""
    space = getattr(aval, "memory_space", None)
    return None if getattr(space, "name", "") in ("DEFAULT", "Device") else space


def is_reference(aval: Aval) -> bool:
    return hasattr(aval, "inner_aval")


def semaphore(aval: Aval) -> str | None:
    """Return the name of a semaphore's type in `pltpu.SemaphoreType`, or None for other arrays."""
    name = str(getattr(getattr(aval, "dtype", None), "name", ""))
    return {"dma_sem": "DMA", "semaphore": "REGULAR", "barrier_semaphore": "BARRIER"}.get(name)


def references(avals: Sequence[Aval]) -> int:
    """Return how many values there are up to the last reference."""
    return max((i + 1 for i, aval in enumerate(avals) if is_reference(aval)), default=0)
