"""The memory of Pallas kernels is known before they are compiled.

`tests.compiler.vmem` compares it with the compiler for TPUs, which these tests do not need.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from jaxsight.features.kernels.pallas import CalledKernels, record
from jaxsight.targets.target import parse
from jaxsight.tracer.programs.pallas_kernels import kernel_facts
from jaxsight.wire.program import SMEM, VMEM, Outside, PallasKernel
from jaxsight_source.compat.staging import open_jaxpr
from tests.compiler.vmem import KERNELS, MIB, Sized, predicted


@pytest.mark.parametrize("sized", KERNELS, ids=lambda sized: sized.name)
def test_the_verdict_is_the_one_that_libtpu_gave(sized: Sized) -> None:
    assert predicted(*sized.make(sized.fits))[0]
    assert not predicted(*sized.make(sized.exceeds))[0]


def _facts(
    shape: tuple[int, ...], spec: pl.BlockSpec, grid: tuple[int, ...], **options: object
) -> PallasKernel:
    def copy(x_ref, out_ref, *scratch):
        out_ref[...] = x_ref[...]

    struct = jax.ShapeDtypeStruct(shape, options.pop("dtype", jnp.float32))
    call = pl.pallas_call(copy, struct, grid=grid, in_specs=[spec], out_specs=spec, **options)
    (equation,) = open_jaxpr(jax.make_jaxpr(call)(struct)).eqns
    return kernel_facts(equation)


@pytest.mark.parametrize(
    ("shape", "dtype", "padded"),
    [
        ((8, 128), jnp.float32, 4096),
        ((8, 100), jnp.float32, 4096),
        ((9, 128), jnp.float32, 8192),
        ((3, 128), jnp.float32, 2048),
        ((1, 128), jnp.bfloat16, 512),
        ((12, 128), jnp.bfloat16, 4096),
        ((20, 128), jnp.int8, 3072),
        ((2, 8, 128), jnp.bool_, 8192),
    ],
)
def test_blocks_are_padded_as_mosaic_pads_them(shape, dtype, padded) -> None:
    facts = _facts(shape, pl.BlockSpec(shape, lambda i: (0,) * len(shape)), (4,), dtype=dtype)
    assert [array.bytes for array in facts.arrays] == [padded, padded]


def test_a_block_that_changes_is_there_twice() -> None:
    facts = _facts((64, 128), pl.BlockSpec((8, 128), lambda i: (i, 0)), (8,))
    assert [array.buffers for array in facts.arrays] == [2, 2]
    assert facts.used(VMEM) == 4 * 4096
    once = _facts((64, 128), pl.BlockSpec((8, 128), lambda i, j: (j, 0)), (8, 1))
    assert [array.buffers for array in once.arrays] == [1, 1]


def test_other_memories_take_no_vmem() -> None:
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.SMEM)
    assert (_facts((64, 128), spec, (8,)).used(VMEM), _facts((64, 128), spec, (8,)).used(SMEM)) == (
        0,
        16384,
    )
    anywhere = _facts((64, 128), pl.BlockSpec(memory_space=pl.ANY), (8,))
    assert anywhere.used(VMEM) == anywhere.used(SMEM) == 0
    scratch = [pltpu.VMEM((256, 1024), jnp.float32), pltpu.SemaphoreType.DMA((4,))]
    with_scratch = _facts(
        (64, 128), pl.BlockSpec(memory_space=pl.ANY), (8,), scratch_shapes=scratch
    )
    assert with_scratch.used(VMEM) == MIB


@pytest.mark.parametrize(
    ("spec", "outside"),
    [
        (pl.BlockSpec((8, 128), lambda i: (i, 0)), None),
        (pl.BlockSpec((24, 128), lambda i: (i // 4, 0)), None),
        (pl.BlockSpec((8, 128), lambda i: (i + 1, 0)), Outside((7,), (64, 0))),
        (pl.BlockSpec((8, 128), lambda i: (i - 1, 0)), Outside((0,), (-8, 0))),
        (pl.BlockSpec((None, 128), lambda i: (i * 10, 0)), Outside((7,), (70, 0))),
        (pl.BlockSpec((8, 128), lambda i: (i, i // 7)), Outside((7,), (56, 128))),
    ],
)
def test_blocks_outside_of_an_array_are_found(spec, outside) -> None:
    def copy(x_ref, out_ref):
        out_ref[...] = x_ref[...]

    struct = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    (equation,) = open_jaxpr(
        jax.make_jaxpr(pl.pallas_call(copy, struct, grid=(8,), in_specs=[spec], out_specs=spec))(
            struct
        )
    ).eqns
    assert {array.outside for array in kernel_facts(equation).arrays} == {outside}


@pytest.mark.parametrize("grid", [(), (1,), (2, 1, 2)])
def test_kernels_without_blocks_take_their_arrays(grid: tuple[int, ...]) -> None:
    facts = _facts((64, 128), pl.BlockSpec(), grid)
    assert (facts.grid, facts.used(VMEM)) == (grid, 2 * 64 * 128 * 4)
    assert [array.outside for array in facts.arrays] == [None, None]


def test_corners_of_large_grids_are_looked_at() -> None:
    def copy(x_ref, out_ref):
        out_ref[...] = x_ref[...]

    facts = _facts((1 << 20, 128), pl.BlockSpec((8, 128), lambda i: (i + 1, 0)), (1 << 17,))
    assert facts.arrays[0].outside == Outside(((1 << 17) - 1,), (1 << 20, 0))


def test_json_has_the_blocks_of_a_kernel_and_its_memory_on_a_tpu() -> None:
    facts = _facts((64, 128), pl.BlockSpec((8, 128), lambda i: (i + 1, 0)), (8,))
    (tpu,) = record(CalledKernels(parse("tpu:v5e"), (facts,), ("copy(x)",)))
    (cpu,) = record(CalledKernels(parse("cpu"), (facts,), ("copy(x)",)))
    keys = ("vmem_bytes", "vmem_limit_bytes", "smem_bytes", "smem_limit_bytes")
    assert [tpu[key] for key in keys] == [16384, 16 * MIB, 0, MIB]
    assert [cpu[key] for key in keys] == [None] * 4
    assert (tpu["name"], tpu["grid"], tpu["source"]) == ("copy", [8], "copy(x)")
    x = {"name": "x_ref", "dtype": "float32", "block": [8, 128], "of": [64, 128]}
    x["outside"] = {"grid_position": [7], "start": [64, 0]}
    assert tpu["arrays"][0] == {**x, "buffers": 2, "memory": "VMEM", "bytes": 8192}
    assert cpu["arrays"][0] == {**x, "buffers": None, "memory": None, "bytes": None}
