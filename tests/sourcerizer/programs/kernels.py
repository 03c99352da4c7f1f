"""Pallas kernels, foreign calls, sparse matrices and what else needs more than jax.lax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental import sparse

from tests.sourcerizer.programs.registry import Call, called, floats, program


@program(gradient=False)
def a_kernel_without_a_grid() -> Call:
    def kernel(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] * 2 + y[...]

    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8,), np.float32), interpret=True)
    return called(call, floats(8), floats(8))


@program(gradient=False)
def a_kernel_with_a_grid_and_block_specs() -> Call:
    def kernel(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] @ y[...]

    def matmul(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((8, 8), x.dtype),
            grid=(2, 2),
            in_specs=[
                pl.BlockSpec((4, 8), lambda i, j: (i, 0)),
                pl.BlockSpec((8, 4), lambda i, j: (0, j)),
            ],
            out_specs=pl.BlockSpec((4, 4), lambda i, j: (i, j)),
            interpret=True,
        )(x, y)

    return called(matmul, floats(8, 8), floats(8, 8))


@program(gradient=False)
def a_kernel_with_program_ids_loops_and_aliases() -> Call:
    def kernel(x: Any, out: Any) -> None:
        i = pl.program_id(0)

        @pl.when(i > 0)
        def _() -> None:
            out[...] = x[...] * i

        @pl.when(i == 0)
        def _() -> None:
            out[...] = jax.lax.fori_loop(0, 3, lambda j, v: v + j, x[...])

    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((4, 2), np.float32), grid=(4,),
        in_specs=[pl.BlockSpec((1, 2), lambda i: (i, 0))], out_specs=pl.BlockSpec((1, 2), lambda i: (i, 0)),
        input_output_aliases={0: 0}, interpret=True, name="scaled",
    )  # fmt: skip
    return called(lambda x: call(x + 1), floats(4, 2))


@program(gradient=False)
def a_foreign_call() -> Call:
    def run(x: Any) -> Any:
        call = jax.ffi.ffi_call(
            "lapack_spotrf_ffi", (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), np.int32)),
            input_layouts=[(1, 0)], output_layouts=[(1, 0), ()], input_output_aliases={0: 0},
        )  # fmt: skip
        return call(x, uplo=np.uint8(ord("L")))

    a = floats(3, 3)
    jnp.linalg.cholesky(jnp.eye(2))  # registers the targets
    return called(run, a @ a.T + 3 * np.eye(3, dtype=np.float32))


@program(gradient=False)
def sparse_matrices_in_coordinates() -> Call:
    def run(dense: Any, v: Any) -> Any:
        m = sparse.BCOO.fromdense(dense, nse=4)
        return (
            m @ v,
            m.todense(),
            (m.T @ v).sum(),
            m.sum_duplicates(nse=4).todense(),
            sparse.bcoo_transpose(m, permutation=(1, 0)).todense(),
        )

    return called(run, np.diag(np.arange(1, 5)).astype(np.float32), floats(4))


@program(gradient=False)
def sparse_arguments_and_results() -> Call:
    m = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1.0, 4.0)))
    return called(lambda m, v: (m * 2, m @ v), m, floats(3))


@program(gradient=False)
def sparse_rows() -> Call:
    def run(dense: Any, v: Any) -> Any:
        m = sparse.BCSR.fromdense(dense, nse=4)
        return m @ v, m.todense()

    return called(run, np.diag(np.arange(1, 5)).astype(np.float32), floats(4))


@program(gradient=False)
def sparsified_function() -> Call:
    def run(dense: Any, v: Any) -> Any:
        m = sparse.BCOO.fromdense(dense, nse=4)
        return sparse.sparsify(lambda a, b: (a * 2) @ b + a.sum())(m, v)

    return called(run, np.diag(np.arange(1, 5)).astype(np.float32), floats(4))


@program(gradient=False, needs=("flatbuffers",))
def an_exported_function() -> Call:
    f = jax.jit(lambda x: jnp.sin(x) * 2)
    exported = jax.export.export(f, platforms=["cpu"])(jax.ShapeDtypeStruct((3,), np.float32))
    return called(lambda x: exported.call(x) + 1, floats(3))


@program(gradient=False, before=(0, 11))
def computed_on_the_host() -> Call:
    from jax.experimental.compute_on import compute_on

    def run(x: Any) -> Any:
        with compute_on("device_host"):
            return x * 2 + jnp.sin(x)

    return called(jax.jit(run), floats(3))


@program(gradient=False)
def metadata_for_the_compiler() -> Call:
    from jax.experimental.xla_metadata import set_xla_metadata

    def run(x: Any) -> Any:
        with set_xla_metadata(my_key="value"):
            y = jnp.sin(x)
        return y + set_xla_metadata(x * 2, other=3)

    return called(run, floats(3))


@program(gradient=False)
def custom_partitioned_function() -> Call:
    from jax.experimental.custom_partitioning import custom_partitioning

    f = custom_partitioning(lambda x: jnp.sin(x) * 2)
    f.def_partition(
        partition=lambda mesh, args, result: (
            mesh,
            lambda x: jnp.sin(x) * 2,
            result.sharding,
            (args[0].sharding,),
        ),
        infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
        sharding_rule="i -> i",
    )
    return called(jax.jit(f), floats(4))


@program(gradient=False, imports=("tests",))
def a_primitive_of_ones_own() -> Call:
    from tests.sourcerizer.programs import third_party

    return called(lambda x: third_party.twice(x) + 1, floats(3))


@program(gradient=False, since=(0, 11))
def computed_on_a_host() -> Call:
    from jax.experimental.compute_on import compute_on

    on_host = compute_on(
        lambda x: x * 2 + jnp.sin(x),
        compute_type="device_host",
        out_memory_spaces=jax.memory.Space.Device,
    )
    return called(jax.jit(on_host), floats(3))
