"""Kernels of Pallas are written as functions of references, with their grid and blocks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from jaxsight_source.api import sourcerize
from tests.jaxsight_source.pallas_kernels import written
from tests.jaxsight_source.pallas_kernels.of_jax import KERNELS

X = np.arange(32, dtype=np.float32).reshape(4, 8)

QUICK = {"tpu_matmul", "tpu_threefry", "gpu_softmax"}
"""The kernels of libraries that take a second together; the others are slow."""


def doubled(x_ref, out_ref):
    first = pl.program_id(0) == 0

    @pl.when(first)
    def _():
        out_ref[...] = x_ref[...] * 2

    @pl.when(jnp.logical_not(first))
    def _():
        out_ref[0, :] = x_ref[1, :]
        out_ref[1, :] = x_ref[0, :] + 1.0


def blocks(x):
    spec = pl.BlockSpec((2, 8), lambda i: (i, 0))
    out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = pl.pallas_call(
        doubled, out_shape, grid=(2,), in_specs=[spec], out_specs=spec, interpret=True
    )
    return call(x)


def test_a_kernel_reads_as_one_would_write_it():
    source = sourcerize(blocks, style="pretty")(X)
    assert (
        source.partition("import pallas as pl\n")[2]
        == """

def doubled(x_ref, out_ref):
    first = pl.program_id(0) == 0

    @pl.when(first)
    def _():
        out_ref[...] = x_ref[...] * 2.0

    @pl.when(~first)
    def _():
        out_ref[0, :] = x_ref[1, :]
        out_ref[1, :] = x_ref[0, :] + 1.0


def blocks(x):
    x = jnp.asarray(x)
    run = pl.pallas_call(
        doubled,
        jax.ShapeDtypeStruct((4, 8), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((2, 8), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((2, 8), lambda i: (i, 0)),
        interpret=True,
    )
    return run(x)
"""
    )
    assert not source.passed
    assert "eagerly" in source.proofs  # it ran, with the kernel interpreted


def test_a_kernel_that_is_not_interpreted_does_not_run():
    def compiled(x):
        return pl.pallas_call(doubled, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,))(x)

    source = sourcerize(compiled)(X)
    assert source.proofs == ("jaxpr",)
    assert "pallas_call" in source.not_run


def test_reads_stay_before_the_conditional_writes_that_follow():
    def swapped(x_ref, out_ref):
        before = x_ref[...]
        out_ref[...] = before

        @pl.when(pl.program_id(0) == 0)
        def _():
            out_ref[...] = before + 1

        out_ref[0, 0] = before[0, 0] + out_ref[1, 1]

    def run(x):
        return pl.pallas_call(
            swapped, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(1,), interpret=True
        )(x)

    assert "eagerly" in sourcerize(run, style="pretty")(X).proofs


def test_references_stay_operands_if_they_are_used_in_another_order():
    def copied(x_ref, out_ref):
        def copy(to_ref, from_ref):
            to_ref[...] = from_ref[...]

        def keep(to_ref, from_ref):
            pass

        jax.lax.cond(pl.program_id(0) == 0, copy, keep, out_ref, x_ref)

    def run(x):
        return pl.pallas_call(
            copied, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(1,), interpret=True
        )(x)

    source = sourcerize(run, style="pretty")(X)
    assert "eagerly" in source.proofs
    assert "if_true, if_false, out_ref, x_ref)" in source


def positions(x_ref, out_ref):
    out_ref[...] = x_ref[...] + jax.lax.axis_index("rows") + 2 * jax.lax.axis_index("columns")


@pytest.mark.parametrize("mapped", [False, True])
def test_the_axes_of_a_grid_keep_their_names(mapped):
    def run(x):
        spec = pl.BlockSpec((2, 8), lambda i, j: (i, j))
        grid = (("rows", 2), ("columns", 1))
        out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        call = pl.pallas_call(positions, out_shape, grid=grid, in_specs=[spec], out_specs=spec)
        return call(x)

    function, x = (jax.vmap(run), X[None]) if mapped else (run, X)
    source = sourcerize(function, style="pretty")(x)
    assert not source.passed
    assert 'grid=(("rows", 2), ("columns", 1)),' in source
    assert "axis_index" in source


@pytest.mark.filterwarnings("ignore")  # what libraries warn of is theirs
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in KERNELS],
)
def test_kernel_of_a_library(name):
    written(KERNELS[name](), "pretty")
