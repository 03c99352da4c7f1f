"""Shared memory of Pallas kernels for GPUs is what Mosaic asks for when it lowers them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from jaxsight.tracer.programs.pallas_kernels import mesh_kernel_facts
from jaxsight.wire.program import SHARED, PallasKernel
from jaxsight_source.compat.inner import walk
from tests.quiet import QUIET
from tests.sessions import session_without_spare

SHAPE = jax.ShapeDtypeStruct((64, 128), jnp.float32)
Scratch = Sequence[Any]


def floats(*shape: int) -> Any:
    return plgpu.SMEM(shape, jnp.float32)


def kernel(body: Callable[..., None], scratch: Scratch) -> Callable[..., Any]:
    """Return a call of a kernel that copies, whatever the names of `plgpu.kernel` in this JAX."""
    names = ("out_type", "scratch_types"), ("out_shape", "scratch_shapes")
    out, of_scratch = names[int("scratch_types" not in inspect.signature(plgpu.kernel).parameters)]
    keywords = {out: SHAPE, of_scratch: scratch, "grid": (2,), "grid_names": ("i",)}
    made: Callable[..., Any] = plgpu.kernel(body, **keywords)
    return made


def copying(x: Any, out: Any, *_: Any) -> None:
    out[...] = x[...]


def in_scopes(x: Any, out: Any, *_: Any) -> None:
    """Scopes within each other, and one after them that has a larger array."""

    def first(*_: Any) -> None:
        pl.run_scoped(lambda _: copying(x, out), floats(64, 128))

    pl.run_scoped(first, floats(10, 128), plgpu.Barrier())
    second = floats(70, 128), plgpu.Barrier(), plgpu.Barrier(num_barriers=2)
    pl.run_scoped(lambda *_: copying(x, out), *second)


def in_branches_and_loops(x: Any, out: Any, *_: Any) -> None:
    def scope(rows: int) -> None:
        pl.run_scoped(lambda _: copying(x, out), floats(rows, 128))

    pl.when(jax.lax.axis_index("i") == 0)(lambda: scope(65))
    pl.when(jax.lax.axis_index("i") == 1)(lambda: scope(64))
    jax.lax.fori_loop(0, 3, lambda *_: scope(66), None)


def summing(x: Any, out: Any, *_: Any) -> None:
    out[...] = jnp.broadcast_to(jnp.sum(x[...], axis=1)[:, None], out.shape)


@pytest.mark.parametrize(
    ("body", "scratch"),
    [
        (copying, (floats(3, 5), plgpu.SMEM((100,), jnp.bfloat16), plgpu.SMEM((1025,), jnp.int8))),
        (copying, (plgpu.SMEM((4097,), jnp.int4), plgpu.SMEM((33,), jnp.bool_))),
        (copying, (plgpu.Barrier(), floats(3, 5), plgpu.Barrier(), plgpu.Barrier(num_barriers=3))),
        (in_scopes, (plgpu.Barrier(),)),
        (in_branches_and_loops, ()),
        (summing, (floats(3, 5),)),
    ],
    ids=["sizes", "bits", "barriers", "scopes", "branches", "reduction"],
)
def test_shared_memory_is_what_mosaic_asks_for(body: Any, scratch: Scratch) -> None:
    # More than a GPU has, as only then Mosaic says how much it is.
    too_much = plgpu.SMEM((1 << 18,), jnp.int8)
    traced = jax.jit(kernel(body, (*scratch, too_much))).trace(SHAPE)
    with pytest.raises(ValueError, match="exceeds available shared memory") as caught:
        traced.lower(lowering_platforms=("cuda",))
    (asked,) = re.findall(r"smem_bytes=(\d+) ", str(caught.value))
    assert facts(traced.jaxpr).used(SHARED) == int(asked)


def facts(jaxpr: object) -> PallasKernel:
    names = ("core_map", "mpmd_map")
    (equation,) = [each for _, each in walk(jaxpr) if each.primitive.name in names]
    found = mesh_kernel_facts(equation)
    assert found is not None
    return found


def test_operands_take_no_shared_memory() -> None:
    found = facts(jax.make_jaxpr(kernel(copying, (floats(8, 128),)))(SHAPE))
    assert found.grid == (2,)
    assert found.used(SHARED) == 4096
    assert found.used_by_itself(SHARED) == 4096


PROGRAM = '''\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def body(x_ref, out_ref, rows, barrier):
    plgpu.copy_gmem_to_smem(x_ref.at[pl.ds(0, 512)], rows, barrier)
    plgpu.barrier_wait(barrier)
    out_ref[pl.ds(0, 512)] = rows[...] * 2


def double(x):
    """
    Example inputs:
        x: f32[8192, 128]
    """
    scratch = [plgpu.SMEM((512, 128), jnp.float32), plgpu.Barrier()]
    return plgpu.kernel(body, out_type=x, scratch_types=scratch)(x)
'''


async def test_a_kernel_that_takes_too_much_is_all_that_is_found(tmp_path: Path) -> None:
    path = str(tmp_path / "case.py")
    session = session_without_spare()
    try:
        settings = {"python": sys.executable, "target": "cuda:h100", "select": ["JX1", "JX457"]}
        session.configure([str(tmp_path)], {**QUIET, **settings})
        session.open(path, PROGRAM)
        found = (await session.report(path, kernels=False)).reported
    finally:
        await session.aclose()
    assert [(each.code, each.message) for each in found] == [
        ("JX457", "`body` takes 256 KiB of shared memory; the limit on h100 is 227 KiB")
    ]
