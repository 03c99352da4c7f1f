"""The memory that a Pallas kernel takes, and its blocks outside of arrays, from its jaxpr.

The rules are those of Mosaic, the compiler of kernels for TPUs, as measured by compiling kernels
with the least `vmem_limit_bytes` that is accepted (libtpu 0.0.52, JAX 0.10.2 and 0.12):

* A block is kept twice while the next one is copied, but once if its index is the same at each
  position of the grid, or if its `pipeline_mode` says so.
* The last axis is padded to a multiple of 128, the one before to the next power of two, or to a
  multiple of 8 from 8 on; at least to as many rows as share 32 bits. Booleans take 32 bits.

What the compiler itself keeps in VMEM, as the values of a large expression, is not known here.

A kernel over a mesh of a GPU (`plgpu.kernel`) allocates shared memory as it goes, by `run_scoped`.
The rules are those of Mosaic GPU (`_estimate_resources` of
`jax/_src/pallas/mosaic_gpu/lowering.py`, JAX 0.8 to 0.12):

* Scopes within each other are there together; of those one after the other, the largest.
* Each array takes a multiple of 1,024 bytes, a barrier 8, tensor memory 4 for its address.
* A reduction reserves memory of its own: see `_reduction_bytes`.

Private API used: the parameters `mesh` of `core_map` and `meshes` of `mpmd_map` (`Mesh` of
`mosaic_gpu/core.py`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.wire.program import ELSEWHERE, SHARED, SMEM, VMEM, KernelArray, Outside, PallasKernel
from jaxsight_source.compat import pallas
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Aval, DType, Equation, Jaxpr
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened

_LANES, _SUBLANES = 128, 8
"""The sizes of a vector register of a TPU, in numbers of 32 bits."""

_ALIGNMENT, _BARRIER, _ADDRESS = 1024, 8, 4
"""Bytes: `SMEM_ALIGNMENT` of `mosaic_gpu/core.py`; `MBARRIER_BYTES` and `_smem_tree_size` of
`jax/experimental/mosaic/gpu` for a barrier and for the address of tensor memory."""

_integers: Callable[[DType], jnp.iinfo] = jnp.iinfo
_floats: Callable[[DType], jnp.finfo] = jnp.finfo

_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})

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


def mesh_kernel_facts(equation: Equation) -> PallasKernel | None:
    """Return the grid, arrays and shared memory of a kernel; None if its mesh is not a GPU's."""
    grid = _gpu_grid(equation)
    bodies = [part.jaxpr for part in inner_jaxprs(equation)]
    if grid is None or len(bodies) != 1:
        return None
    (body,) = bodies
    # What a `core_map` reads and writes, it closes over.
    operands = [var for var in (*body.constvars, *body.invars) if pallas.is_reference(var.aval)]
    names = parameter_names(body) if len(operands) == len(body.invars) else []
    whole = [
        replace(_array(name, var.aval, ELSEWHERE, 1), array=tuple(var.aval.shape))
        for name, var in zip(names, operands, strict=False)
    ]
    needed = _needed(body, equation.params.get("compiler_params"))
    name = str(equation.params.get("name") or "kernel")
    return PallasKernel(name, grid, (*whole, *needed.all()), 0)


@dataclass(frozen=True, slots=True)
class _Needed:
    """What a part of a kernel has in shared memory at most."""

    arrays: tuple[KernelArray, ...] = ()
    barriers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How many arrays of barriers there are, by their dtype and size."""
    has_tensor_memory: bool = False

    @property
    def bytes(self) -> int:
        return sum(array.bytes for array in self.arrays)

    def within(self, outer: _Needed) -> _Needed:
        """Return what is needed inside of a scope."""
        return _Needed(
            (*outer.arrays, *self.arrays),
            outer.barriers + self.barriers,
            outer.has_tensor_memory or self.has_tensor_memory,
        )

    def after(self, earlier: _Needed) -> _Needed:
        """Return what is needed by a part and by an earlier one, whose memory it takes over."""
        return _Needed(
            max(earlier, self, key=lambda part: part.bytes).arrays,
            earlier.barriers | self.barriers,
            earlier.has_tensor_memory or self.has_tensor_memory,
        )

    def all(self) -> Iterator[KernelArray]:
        """Yield the arrays, and what else takes memory."""
        yield from self.arrays
        count = sum(size * number for (_, size), number in self.barriers.items())
        if count:
            yield KernelArray("barriers", (count,), "barrier", SHARED, 1, count * _BARRIER)
        if self.has_tensor_memory:
            yield KernelArray("tensor memory", (), "address", SHARED, 1, _ADDRESS)


def _needed(jaxpr: Jaxpr, compiler_params: object) -> _Needed:
    """Return what the scopes of a kernel take with the parameters that it is called with."""
    result = _Needed()
    for equation in jaxpr.eqns:
        if equation.primitive.name in _REDUCTIONS:
            size = _reduction_bytes(compiler_params, equation.invars[0].aval)
            result = _Needed((_shared("reduction", (size,), "uint8", size),)).after(result)
        inside = _Needed()
        for part in inner_jaxprs(equation):
            needed = _needed(part.jaxpr, compiler_params)
            if equation.primitive.name == "run_scoped":
                needed = needed.within(_allocated(part.jaxpr))
            inside = needed.after(inside)
        result = inside.after(result)
    return result


def _allocated(scope: Jaxpr) -> _Needed:
    arrays: list[KernelArray] = []
    barriers: Counter[tuple[str, int]] = Counter()
    has_tensor_memory = False
    for name, var in zip(parameter_names(scope), scope.invars, strict=True):
        aval: Aval = var.aval
        size, memory = math.prod(aval.shape), getattr(pallas.memory_space(aval), "name", "")
        if type(aval.dtype).__name__ in ("BarrierType", "ClusterBarrierType"):  # a GPU's
            barriers[str(aval.dtype), size] += 1
        elif memory == "SMEM":
            stored = size * _bits(aval.dtype) // 8
            arrays.append(_shared(name, tuple(aval.shape), str(aval.dtype), stored))
        has_tensor_memory |= memory == "TMEM"
    return _Needed(tuple(arrays), barriers, has_tensor_memory)


def _shared(name: str, shape: tuple[int, ...], dtype: str, size: int) -> KernelArray:
    return KernelArray(name, shape, dtype, SHARED, 1, -(-size // _ALIGNMENT) * _ALIGNMENT)


def _bits(dtype: DType) -> int:
    """Return the bits of an element, which can be fewer than a byte."""
    if jnp.issubdtype(dtype, jnp.integer):
        return int(_integers(dtype).bits)
    if jnp.issubdtype(dtype, jnp.floating):
        return int(_floats(dtype).bits)
    return dtype.itemsize * 8


def _gpu_grid(equation: Equation) -> tuple[int, ...] | None:
    """Return the grid, with the cluster, of a kernel over a mesh; None if that is not a GPU's."""
    params: Any = equation.params
    meshes = params.get("meshes") or (params.get("mesh"),)
    mesh = meshes[0]
    if len(meshes) != 1 or ".mosaic_gpu." not in type(mesh).__module__:
        return None
    return (*mesh.grid, *mesh.cluster)


def _reduction_bytes(compiler_params: Any, aval: Aval) -> int:
    """Return the bytes that Mosaic GPU reserves for a reduction.

    The default is that of `plgpu.CompilerParams`; JAX 0.8 has 256 elements
    (`REDUCE_SCRATCH_ELEMS` of `mosaic_gpu/lowering.py`).
    """
    # A program with such a mesh has imported it.
    from jax.experimental.pallas import mosaic_gpu

    default = getattr(mosaic_gpu.CompilerParams(), "reduction_scratch_bytes", None)
    if default is None:
        return 256 * int(getattr(aval.dtype, "itemsize", 4))
    return int(getattr(compiler_params, "reduction_scratch_bytes", default))
