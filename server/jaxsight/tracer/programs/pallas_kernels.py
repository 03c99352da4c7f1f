"""The memory that a Pallas kernel takes, and its blocks outside of arrays, from its jaxpr.

The rules are those of Mosaic, the compiler of kernels for TPUs, as measured by compiling kernels
with the least `vmem_limit_bytes` that is accepted (libtpu 0.0.52, JAX 0.10.2 and 0.12):

* A block is kept twice while the next one is copied, but once if its index is the same at each
  position of the grid, or if its `pipeline_mode` says so.
* The last axis is padded to a multiple of 128, the one before to the next power of two, or to a
  multiple of 8 from 8 on; at least to as many rows as share 32 bits. Booleans take 32 bits.

What the compiler itself keeps in VMEM, as the values of a large expression, is not known here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxsight.wire.program import ELSEWHERE, SMEM, VMEM, KernelArray, Outside, PallasKernel
from jaxsight_source.compat import pallas
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.jaxpr_types import Aval, Equation, Jaxpr
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened

_LANES, _SUBLANES = 128, 8
"""The sizes of a vector register of a TPU, in numbers of 32 bits."""

_MOST_POSITIONS = 1 << 14
"""The largest grid of which each position is looked at, a choice: it takes milliseconds. Of larger
ones, the corners are."""


def kernel_facts(equation: Equation) -> PallasKernel:
    """Return the grid, arrays and memory of a `pallas_call`."""
    call = pallas.kernel_call(equation)
    # Each takes the next names: they come last in `zip`, which asks for no more than it needs.
    names = iter(parameter_names(call.body.jaxpr))
    scalars = zip(call.body.jaxpr.invars[: call.prefetched], names, strict=False)
    prefetched = [_array(name, var.aval, SMEM, 1) for var, name in scalars]
    blocks = [_block(name, call, block) for block, name in zip(call.blocks, names, strict=False)]
    allocated = zip(call.scratch, names, strict=False)
    scratch = [_array(name, aval, _memory(aval), 1) for aval, name in allocated]
    return PallasKernel(
        call.name,
        tuple(-1 if size is None else size for size in call.grid),
        (*prefetched, *blocks, *scratch),
        _vmem_limit(equation.params.get("compiler_params")),
    )


def parameter_names(jaxpr: Jaxpr) -> list[str]:
    """Return the names of the parameters of a kernel, or of a part of one."""
    names = enumerate(argument_names(opened(jaxpr)))
    return [name or f"argument {index}" for index, name in names]


def _vmem_limit(compiler_params: Any) -> int:
    if isinstance(compiler_params, dict) or hasattr(compiler_params, "values"):  # before JAX 0.9
        compiler_params = next(iter(compiler_params.values()), None)
    return int(getattr(compiler_params, "vmem_limit_bytes", None) or 0)


def _block(name: str, call: pallas.KernelCall, block: pallas.KernelBlock) -> KernelArray:
    memory = _memory(block.reference)
    depth = getattr(block.pipeline_mode, "buffer_count", None)
    usual = 1 if _is_constant(call, block.index_map) else 2
    buffers = depth if isinstance(depth, int) else usual
    sized = _array(name, block.reference, memory, buffers if memory != ELSEWHERE else 1)
    whole = tuple(block.array.shape)
    return replace(sized, shape=block.sizes, array=whole, outside=_outside(call, block))


def _array(name: str, aval: Aval, memory: str, buffers: int) -> KernelArray:
    shape = tuple(aval.shape)
    size = _padded(shape, aval.dtype) * buffers if memory != ELSEWHERE else 0
    return KernelArray(name, shape, str(aval.dtype), memory, buffers, size)


def _memory(aval: Aval) -> str:
    """Return the memory of a reference on a TPU; blocks are in VMEM by default."""
    if pallas.semaphore(aval) is not None:
        return ELSEWHERE
    space = pallas.memory_space(aval)
    name = str(getattr(space, "name", "") or "").upper()
    if space is None or name == VMEM:
        return VMEM
    return SMEM if name == SMEM and ".mosaic." in type(space).__module__ else ELSEWHERE


def _padded(shape: Sequence[int], dtype: Any) -> int:
    """Return the bytes of an array in VMEM or SMEM, with its padding."""
    itemsize = 4 if dtype == np.bool_ else int(getattr(dtype, "itemsize", 4))
    if not shape:
        return 4
    *outer, columns = shape
    columns = -(-columns // _LANES) * _LANES
    if not outer:
        return columns * itemsize
    *outer, rows = outer
    packed = max(4 // itemsize, 1)
    tile = max(packed, min(1 << (rows - 1).bit_length(), _SUBLANES))
    return math.prod(outer) * (-(-rows // tile) * tile) * columns * itemsize


def _is_constant(call: pallas.KernelCall, index_map: Program) -> bool:
    """Return whether an index map returns the same at each position of the grid."""
    jaxpr = index_map.jaxpr
    varying = {
        id(var)
        for var, size in zip(jaxpr.invars, (*call.grid, *[None] * call.prefetched), strict=False)
        if size != 1
    }
    for equation in jaxpr.eqns:
        if any(id(atom) in varying for atom in equation.invars):
            varying.update(id(var) for var in equation.outvars)
    return not any(id(atom) in varying for atom in jaxpr.outvars)


def _outside(call: pallas.KernelCall, block: pallas.KernelBlock) -> Outside | None:
    """Return the first block that lies completely outside of its array, if one is found.

    Nothing is known of index maps that read prefetched scalars, and of sizes that are computed.
    """
    jaxpr = block.index_map.jaxpr
    sizes = [size for size in call.grid if size is not None]
    known = len(sizes) == len(call.grid) and 0 not in sizes
    if not known or any(map(_reads, jaxpr.eqns)) or len(jaxpr.outvars) != len(block.sizes):
        return None
    kinds = [type(dimension).__name__ for dimension in block.dimensions]
    if not {"Blocked", "Squeezed", "Element"}.issuperset(kinds):
        return None
    # The corners of a large grid alone.
    is_small = math.prod(sizes) <= _MOST_POSITIONS
    axes = (range(size) if is_small else sorted({0, size - 1}) for size in sizes)
    listed = list(itertools.product(*axes))
    positions = np.array(listed, np.int32).reshape(len(listed), len(sizes))
    try:
        indices = _indices(block.index_map, positions, call.prefetched)
    except Exception:  # noqa: BLE001 - whatever the index map does, nothing is known of it
        return None
    starts = np.zeros((len(positions), len(kinds)), np.int64)
    for axis, (index, kind) in enumerate(zip(indices, kinds, strict=True)):
        starts[:, axis] = index * (block.sizes[axis] if kind == "Blocked" else 1)
    # The indices of an `Element` count its padding.
    ends = [
        size + sum(getattr(dimension, "padding", (0, 0)))
        for size, dimension in zip(block.array.shape, block.dimensions, strict=True)
    ]
    outside = (starts >= np.array(ends)) | (starts + np.array(block.sizes) <= 0)
    found = np.flatnonzero(outside.any(axis=-1))
    if not len(found):
        return None
    first = int(found[0])
    return Outside(tuple(map(int, positions[first])), tuple(map(int, starts[first])))


def _reads(equation: Equation) -> bool:
    return any(pallas.is_reference(atom.aval) for atom in equation.invars if not is_literal(atom))


def _indices(index_map: Program, positions: Any, prefetched: int) -> list[Any]:
    """Return the index along each axis, at each position."""

    def at(position: Any) -> list[Any]:
        # References that are not read stand for nothing.
        return list(evaluate(index_map, *position, *[None] * prefetched))

    results = jax.vmap(at)(positions)
    return [np.broadcast_to(np.asarray(each, np.int64), (len(positions),)) for each in results]
