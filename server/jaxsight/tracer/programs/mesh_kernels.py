"""The memory of a Pallas kernel over a mesh of a GPU (`plgpu.kernel`), from its jaxpr.

Such a kernel allocates shared memory as it goes, by `run_scoped`. The rules are those of Mosaic GPU
(`_estimate_resources` of `jax/_src/pallas/mosaic_gpu/lowering.py`, JAX 0.8 to 0.12):

* Scopes within each other are there together; of those one after the other, the largest.
* Each array takes a multiple of 1,024 bytes, a barrier 8, tensor memory 4 for its address.
* A reduction reserves memory of its own: see `_reduction_bytes`.

Private API used: the parameters `mesh` of `core_map` and `meshes` of `mpmd_map` (`Mesh` of
`mosaic_gpu/core.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from jaxsight.tracer.programs.pallas_kernels import parameter_names
from jaxsight.wire.program import ELSEWHERE, SHARED, KernelArray, PallasKernel
from jaxsight_source.compat import pallas
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Aval, DType, Equation, Jaxpr

_ALIGNMENT, _BARRIER, _ADDRESS = 1024, 8, 4
"""Bytes: `SMEM_ALIGNMENT` of `mosaic_gpu/core.py`; `MBARRIER_BYTES` and `_smem_tree_size` of
`jax/experimental/mosaic/gpu` for a barrier and for the address of tensor memory."""

_integers: Callable[[DType], jnp.iinfo] = jnp.iinfo
_floats: Callable[[DType], jnp.finfo] = jnp.finfo

_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})


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
        KernelArray(name, shape, str(var.aval.dtype), ELSEWHERE, 1, 0, shape)
        for name, var in zip(names, operands, strict=False)
        for shape in (tuple(var.aval.shape),)
    ]
    needed = _Scopes(equation.params.get("compiler_params")).needed(body)
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


@dataclass(frozen=True, slots=True)
class _Scopes:
    """Adds up the scopes of a kernel with the compiler parameters that it is called with."""

    compiler_params: object

    def needed(self, jaxpr: Jaxpr) -> _Needed:
        result = _Needed()
        for equation in jaxpr.eqns:
            result = self._needed_by(equation).after(result)
        return result

    def _needed_by(self, equation: Equation) -> _Needed:
        if equation.primitive.name in _REDUCTIONS:
            size = _reduction_bytes(self.compiler_params, equation.invars[0].aval)
            return _Needed((_shared("reduction", (size,), "uint8", size),))
        result = _Needed()
        for part in inner_jaxprs(equation):
            needed = self.needed(part.jaxpr)
            if equation.primitive.name == "run_scoped":
                needed = needed.within(_allocated(part.jaxpr))
            result = needed.after(result)
        return result


def _allocated(scope: Jaxpr) -> _Needed:
    arrays: list[KernelArray] = []
    barriers: Counter[tuple[str, int]] = Counter()
    has_tensor_memory = False
    for name, var in zip(parameter_names(scope), scope.invars, strict=True):
        aval: Aval = var.aval
        size, memory = math.prod(aval.shape), getattr(pallas.memory_space(aval), "name", "")
        if _is_barrier(aval):
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


def _is_barrier(aval: Aval) -> bool:
    """Return whether a reference is to barriers of a GPU."""
    return type(aval.dtype).__name__ in ("BarrierType", "ClusterBarrierType")


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
