"""Is what jaxsight says of a Pallas kernel's memory what the compiler for TPUs says?

    python -m tests.compiler.vmem LIBTPU.so

Each kernel is compiled for a TPU v5e that is not there, by the library at that path
(`pip download libtpu`); half of them fit, and half of them just do not.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

if __name__ == "__main__":  # libtpu reads these when it is loaded
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "TPU_LIBRARY_PATH": sys.argv[1],
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_LOG_DIR": "disabled",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
    }

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from jaxsight.targets.chips.tpus import TPUS
from jaxsight.tracer.programs.pallas_kernels import kernel_facts
from jaxsight.wire.program import SMEM, VMEM, PallasKernel
from jaxsight_source.compat.staging import open_jaxpr

CHIP = TPUS["v5e"]
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Sized:
    """A kernel that fits with one size, and does not with another."""

    name: str
    make: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]
    fits: int
    exceeds: int


def _struct(*shape: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def _double(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = x_ref[...] * 2


def _rows(rows: int, columns: int = 1024, dtype: Any = jnp.float32, **options: Any) -> Any:
    """Blocks of rows, each read and written twice over (while the next one is copied)."""
    spec = pl.BlockSpec((rows, columns), lambda i: (i, 0))
    shape = _struct(64 * rows, columns, dtype=dtype)
    call = pl.pallas_call(
        _double, shape, grid=(64,), in_specs=[spec], out_specs=spec,
        compiler_params=pltpu.CompilerParams(**options),
    )  # fmt: skip
    return call, (shape,)


def _matmul(k: int) -> Any:
    """A product with an accumulator, which is there once.

    The compiler keeps about 3 MiB of its own beside the blocks: from 2,944 on (13.5 MiB of blocks)
    it refuses what the blocks alone would allow. jaxsight says nothing of that.
    """

    def kernel(x_ref: Any, y_ref: Any, out_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        out_ref[...] = sum_ref[...].astype(out_ref.dtype)

    call = pl.pallas_call(
        kernel, _struct(8192, 8192, dtype=jnp.bfloat16), grid=(16, 16, 65536 // k),
        in_specs=[pl.BlockSpec((512, k), lambda i, j, k: (i, k)), pl.BlockSpec((k, 512), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((512, 512), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((512, 512), jnp.float32)],
    )  # fmt: skip
    return call, (
        _struct(8192, 65536, dtype=jnp.bfloat16),
        _struct(65536, 8192, dtype=jnp.bfloat16),
    )


def _constant(rows: int) -> Any:
    """An operand whose block never changes, which is there once."""

    def kernel(x_ref: Any, table_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] + table_ref[0:8, :]

    spec = pl.BlockSpec((8, 1024), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel, _struct(1 << 16, 1024), grid=(1 << 13,),
        in_specs=[spec, pl.BlockSpec((rows, 1024), lambda i: (0, 0))], out_specs=spec,
    )  # fmt: skip
    return call, (_struct(1 << 16, 1024), _struct(rows * 64, 1024))


def _single(rows: int) -> Any:
    """An operand that is there once because the user says so."""
    spec = pl.BlockSpec((rows, 1024), lambda i: (i, 0))
    once = pl.BlockSpec((rows, 1024), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))
    shape = _struct(64 * rows, 1024)
    call = pl.pallas_call(_double, shape, grid=(64,), in_specs=[once], out_specs=spec)
    return call, (shape,)


def _padded(count: int) -> Any:
    """Blocks with 3 rows, which are padded to 4."""
    spec = pl.BlockSpec((None, count, 3, 128), lambda i: (i, 0, 0, 0))
    shape = _struct(1 << 9, count, 3, 128)
    return pl.pallas_call(_double, shape, grid=(1 << 9,), in_specs=[spec], out_specs=spec), (shape,)


def _scratch(count: int, dtype: Any = jnp.float32) -> Any:
    """Scratch memory of single rows, which keep their size only with 32 bits."""

    def kernel(x_ref: Any, out_ref: Any, memory_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            memory_ref[0] = jnp.zeros((1, 128), dtype)

        memory_ref[pl.program_id(0) % count] = x_ref[0:1, :].astype(dtype)
        out_ref[...] = x_ref[...] + memory_ref[0].astype(jnp.float32)

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel, _struct(1 << 20, 128), grid=(1 << 17,), in_specs=[spec], out_specs=spec,
        scratch_shapes=[pltpu.VMEM((count, 1, 128), dtype)],
    )  # fmt: skip
    return call, (_struct(1 << 20, 128),)


def _scalars(count: int, columns: int = 0) -> Any:
    """Prefetched scalars, which are in SMEM."""

    def kernel(table_ref: Any, x_ref: Any, out_ref: Any) -> None:
        first = table_ref[0, 0] if columns else table_ref[0]
        out_ref[...] = x_ref[...] + first.astype(jnp.float32)

    spec = pl.BlockSpec((8, 128), lambda i, table: (i, 0))
    shape = (count, columns) if columns else (count,)
    call = pl.pallas_call(
        kernel, _struct(64, 128), grid_spec=pltpu.PrefetchScalarGridSpec(1, (8,), [spec], spec)
    )
    return call, (_struct(*shape, dtype=jnp.int32), _struct(64, 128))


KERNELS = (
    Sized("blocks of float32", _rows, 1024, 1032),
    Sized("blocks of bfloat16", functools.partial(_rows, dtype=jnp.bfloat16), 2048, 2064),
    Sized("a limit of the user's", functools.partial(_rows, vmem_limit_bytes=32 * MIB), 2048, 2056),
    Sized("a matmul with an accumulator", _matmul, 2816, 3712),
    Sized("an operand that stays", _constant, 4064, 4096),
    Sized("one buffer", _single, 1360, 1368),
    Sized("padded rows", _padded, 2048, 2056),
    Sized("scratch of single rows", _scratch, 32000, 33000),
    Sized("scratch of packed rows", functools.partial(_scratch, dtype=jnp.bfloat16), 32000, 33000),
    Sized("prefetched scalars", functools.partial(_scalars, columns=10), 2000, 2056),
)


def predicted(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[bool, PallasKernel]:
    """Return whether jaxsight says that a kernel fits, and what it knows of it."""
    pending = list(open_jaxpr(jax.make_jaxpr(function)(*arguments)).eqns)
    (kernel,) = [kernel_facts(each) for each in pending if each.primitive.name == "pallas_call"]
    limit = min(kernel.vmem_limit, CHIP.vmem) if kernel.vmem_limit else CHIP.kernel_vmem
    return kernel.used(VMEM) <= limit and kernel.used(SMEM) <= CHIP.smem, kernel


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...], device: Any) -> bool:
    """Return whether the compiler accepts a kernel; raise what it raises for another reason."""
    sharding = jax.sharding.SingleDeviceSharding(device)
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding) for x in arguments]
    try:
        jax.jit(function).trace(*structs).lower(lowering_platforms=("tpu",)).compile()
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return False
    return True


def main() -> int:
    from jax.experimental import topologies

    description = topologies.get_topology_desc(platform="tpu", topology_name=CHIP.topology)
    agreed = count = 0
    print("| kernel | size | VMEM | SMEM | jaxsight | libtpu |\n|---|---|---|---|---|---|")
    for sized in KERNELS:
        for size in (sized.fits, sized.exceeds):
            function, arguments = sized.make(size)
            fits, kernel = predicted(function, arguments)
            accepted = compiled(function, arguments, description.devices[0])
            used = [f"{kernel.used(memory) / MIB:.2f} MiB" for memory in (VMEM, SMEM)]
            words = ["fits" if each else "too large" for each in (fits, accepted)]
            print(f"| {sized.name} | {size} | {' | '.join([*used, *words])} |", flush=True)
            agreed += fits == accepted
            count += 1
    print(f"\nequal in {agreed} of {count}, with JAX {jax.__version__}")
    return int(agreed < count)


if __name__ == "__main__":
    sys.exit(main())
