"""Pallas kernels, foreign calls, sparse matrices and what else needs more than jax.lax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental import sparse
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plgpu

from jaxsight_source.jaxprs.same.parameters import DEEPEST_RULES
from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, program


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
def a_kernel_with_prefetched_scalars_and_scratch_memory() -> Call:
    def kernel(chosen: Any, x: Any, out: Any, total: Any) -> None:
        i = pl.program_id(0)
        total[...] = jnp.zeros_like(total)

        def add(j: Any, count: Any) -> Any:
            total[j, :] += x[j, pl.ds(0, 8)] * chosen[i].astype(jnp.float32)
            return count + 1

        count = jax.lax.fori_loop(np.int32(0), np.int32(4), add, np.int32(0))
        last = jax.lax.cond(i > 0, lambda: total[0, :], lambda: x[1, :] + count.astype(jnp.float32))
        out[...] = jnp.where(total[...] > 0, total[...], last)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec((4, 8), lambda i, chosen: (chosen[i], np.int32(0)))],
        out_specs=pl.BlockSpec((4, 8), lambda i, chosen: (i, np.int32(0))),
        scratch_shapes=[pltpu.VMEM((4, 8), jnp.float32)],
    )
    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 8), np.float32), grid_spec=spec, interpret=True,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )  # fmt: skip
    return called(call, np.array([1, 0], np.int32), floats(8, 8))


@program(gradient=False)
def a_kernel_with_masks_and_views() -> Call:
    def kernel(x: Any, out: Any) -> None:
        columns = jax.lax.iota(jnp.int32, 128)
        row = plgpu.load(x.at[0, columns], mask=columns < 100, other=-1.0)
        plgpu.store(out.at[pl.ds(0, 128)], row * 2, mask=columns < 100)

    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((128,), np.float32), interpret=True
    )
    return called(call, floats(1, 128))


@program(gradient=False)
def a_kernel_under_vmap() -> Call:
    def kernel(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] * pl.program_id(0).astype(jnp.float32) + y[...]

    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((4, 8), np.float32), grid=(2,), interpret=True,
        in_specs=[pl.BlockSpec((2, 8), lambda i: (i, np.int32(0))), pl.BlockSpec((8,), lambda i: (np.int32(0),))],
        out_specs=pl.BlockSpec((2, 8), lambda i: (i, np.int32(0))),
        cost_estimate=pl.CostEstimate(flops=64, bytes_accessed=512, transcendentals=0),
    )  # fmt: skip
    batched = jax.vmap(jax.vmap(call, in_axes=(1, None)), in_axes=(0, 0))
    return called(batched, floats(2, 4, 3, 8), floats(2, 8))


@program(gradient=False)
def a_kernel_that_copies_between_memories() -> Call:
    def kernel(x: Any, out: Any) -> None:
        def scoped(buffer: Any, semaphore: Any) -> None:
            copy = pltpu.make_async_copy(x.at[pl.ds(8, 8)], buffer, semaphore.at[1])
            copy.start()
            copy.wait()
            out[...] = buffer[...] + 1

        pl.run_scoped(scoped, pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,)))

    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 128), np.float32), interpret=True,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM), name="copied",
    )  # fmt: skip
    return called(call, floats(16, 128))


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
    return called(lambda x: exported.call(x) + 1, floats(3), _orders=DEEPEST_RULES)


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
    from tests.corpora.jaxsight_source.programs import third_party

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
