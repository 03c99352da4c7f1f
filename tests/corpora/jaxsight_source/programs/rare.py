"""Primitives of corners of JAX, each as its public function makes it."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import layout, multihost_utils, sparse
from jax.experimental.sparse.linalg import spsolve
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, program


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:4]), ("x",))


@program(gradient=False)
def sparse_matrices_by_coordinates_alone() -> Call:
    def run(x: Any, v: Any) -> Any:
        made = sparse.COO.fromdense(x, nse=16)
        return made @ v, made @ x, made.todense(), made.T @ v

    return called(run, floats(4, 4), floats(4))


@program(gradient=False)
def sparse_matrices_by_rows_alone() -> Call:
    def run(x: Any, v: Any) -> Any:
        made = sparse.CSR.fromdense(x, nse=16)
        return made @ v, made @ x, made.todense()

    return called(run, floats(4, 4), floats(4))


@program(gradient=False)
def sparse_parts_and_products() -> Call:
    numbers = (((1,), (0,)), ((), ()))

    def run(x: Any) -> Any:
        made = sparse.BCOO.fromdense(x, nse=16)
        rows = sparse.BCSR.fromdense(x, nse=16)
        return (
            sparse.bcoo_extract(made, x).data,
            made.sort_indices().data,
            (made @ made).todense(),
            sparse.bcoo_dot_general_sampled(x, x, made.indices, dimension_numbers=numbers),
            sparse.bcsr_extract(rows.indices, rows.indptr, x),
            sparse.todense(x),
        )

    return called(run, floats(4, 4))


@program(gradient=False)
def sparse_system_solved_directly() -> Call:
    data, indices, rows = np.ones(4, np.float32), np.arange(4), np.arange(5)
    ints = indices.astype(np.int32), rows.astype(np.int32)
    return called(lambda d, b: spsolve(d, *ints, b, tol=1e-5), data, floats(4), _bits=False)


@program(devices=4, gradient=False)
def values_sent_by_one_device_to_another() -> Call:
    with warnings.catch_warnings():  # they are deprecated in 0.12, and still there
        warnings.simplefilter("ignore")
        send, receive = lax.psend, lax.precv

    @partial(jax.shard_map, mesh=_mesh(), in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def run(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return lax.pbroadcast(x, "x", 0) + receive(send(x, "x", [(0, 1)]), shape, "x", [(0, 1)])

    return called(run, floats(4, 4), _bits=False)


@program(devices=4, since=(0, 10), gradient=False)
def gathered_values_that_do_not_vary() -> Call:
    @partial(jax.shard_map, mesh=_mesh(), in_specs=P("x"), out_specs=P())
    def run(x: Any) -> Any:
        return lax.all_gather(x, "x", to="invarying")

    return called(run, floats(4, 4))


@program(devices=4, gradient=False)
def arrays_of_hosts_and_of_all() -> Call:
    mesh = _mesh()

    def run(x: Any) -> Any:
        whole = multihost_utils.host_local_array_to_global_array(x, mesh, P("x"))
        return multihost_utils.global_array_to_host_local_array(whole * 2, mesh, P("x"))

    return called(run, floats(4, 4))


@program()
def layouts_asked_for() -> Call:
    @jax.jit
    def run(x: Any) -> Any:
        return layout.with_layout_constraint(x * 2, layout.Layout((1, 0)))

    return called(run, floats(4, 4))


@program(since=(0, 12))
def calls_with_metadata() -> Call:
    from jax.experimental.xla_metadata import xla_metadata_call

    @xla_metadata_call(block="inner", level=3)
    def inner(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y, y + 1

    return called(lambda x: inner(x, x * 2), floats(3))


@program(since=(0, 12))
def polynomials_by_their_coefficients() -> Call:
    def run(x: Any, a: Any) -> Any:
        return lax.polynomial(x, (1.0, 2.0, 3.0)), lax.polynomial(x, [a, 2.0, a], unroll=2)

    return called(run, floats(3), np.float32(0.5))


@program(since=(0, 10), gradient=False)
def householder_products_applied() -> Call:
    return called(
        lambda a, taus, c: lax.linalg.ormqr(a, taus, c), floats(4, 4), floats(4), floats(4, 4)
    )


@program(gradient=False)
def tokens_that_are_results() -> Call:
    def run(x: Any) -> Any:
        token = lax.after_all(lax.create_token(x), lax.create_token(x))
        return lax.optimization_barrier((x * 2, token))[0]

    return called(run, floats(3), _bits=False)


@program(since=(0, 10), gradient=False)
def bits_of_other_generators() -> Call:
    def run() -> Any:
        return [
            jax.random.bits(jax.random.key(0, impl=name), (3,))
            for name in ("philox2x32", "philox4x32", "threefry4x32")
        ]

    return called(run)


@program(gradient=False)
def sharding_told_while_compiling() -> Call:
    shardings: list[Any] = []

    def run(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x, callback=shardings.append)
        return x * 2

    return called(run, floats(3))
