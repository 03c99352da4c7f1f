"""Meshes, shard_map, collectives and shardings, on four devices."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


def _mesh() -> Any:
    return jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def _line() -> Any:
    return jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


@program(devices=4)
def shard_map_with_a_sum() -> Call:
    mesh = _mesh()

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    def matmul(a: Any, b: Any) -> Any:
        return lax.psum(a @ b, "y")

    return called(matmul, floats(4, 4), floats(4, 2))


@program(devices=4)
def shard_map_of_all_collectives() -> Call:
    mesh = _line()

    @partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    def run(x: Any) -> Any:
        i = lax.axis_index("i")
        ring = lax.ppermute(x, "i", [(j, (j + 1) % 4) for j in range(4)])
        return (
            lax.psum(x, "i"), lax.pmax(x, "i"), lax.pmin(x, "i"), lax.pmean(x, "i"), ring, x * i,
            lax.all_gather(x, "i", tiled=True), lax.all_gather(x, "i", axis=1), lax.psum_scatter(x, "i", tiled=True),
            lax.all_to_all(x.reshape(4, -1), "i", 0, 1, tiled=True), lax.pshuffle(x, "i", [1, 0, 3, 2]),
        )  # fmt: skip

    return called(run, floats(16, 4))


@program(devices=4)
def shard_map_with_axis_groups() -> Call:
    mesh = _line()

    @partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    def run(x: Any) -> Any:
        groups = [[0, 1], [2, 3]]
        return lax.psum(x, "i", axis_index_groups=groups), lax.all_gather(
            x, "i", axis_index_groups=groups
        )

    return called(run, floats(8))


@program(devices=4)
def shard_map_checking_variance() -> Call:
    mesh = _mesh()

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
    def run(x: Any, w: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            return c + v * w[0], v

        start = (
            lax.pcast(jnp.float32(0), "x", to="varying")
            if hasattr(lax, "pcast")
            else lax.pvary(jnp.float32(0), "x")
        )
        total, ys = lax.scan(step, start, x)
        return ys, lax.psum(total, "x")

    return called(run, floats(8), floats(2))


@program(devices=4)
def gradient_of_a_shard_map() -> Call:
    mesh = _mesh()

    def loss(w: Any, x: Any) -> Any:
        @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("x")), out_specs=P())
        def inner(w: Any, x: Any) -> Any:
            return lax.pmean(jnp.mean((x @ w) ** 2), "x")

        return inner(w, x)

    return called(jax.jit(jax.value_and_grad(loss)), floats(3), floats(4, 3))


@program(devices=4)
def shard_map_over_some_axes() -> Call:
    mesh = _mesh()

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def run(x: Any) -> Any:
        return x * 2 + lax.axis_index("x")

    return called(jax.jit(run), floats(4, 4))


@program(devices=4)
def shard_map_within_jit_within_scan() -> Call:
    mesh = _line()
    inner = jax.shard_map(
        lambda x: lax.psum(x, "i") / 4 + x, mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )

    @jax.jit
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (inner(c), None), x, None, 3)[0]

    return called(run, floats(8))


@program(devices=4)
def sharding_constraints() -> Call:
    mesh = _mesh()

    @jax.jit
    def run(x: Any) -> Any:
        h = lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("x", None)))
        return lax.with_sharding_constraint({"h": h @ h.T}, NamedSharding(mesh, P(("x", "y"))))

    return called(run, floats(4, 4))


@program(devices=4)
def jit_with_shardings_in_and_out() -> Call:
    mesh = _mesh()
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    inner = jax.jit(lambda x, w: x @ w, in_shardings=(rows, whole), out_shardings=rows)
    return called(lambda x, w: inner(x, w) + 1, floats(4, 4), floats(4, 2))


@program(devices=4, gradient=False)
def device_puts() -> Call:
    mesh = _mesh()

    def run(x: Any) -> Any:
        return jax.device_put(x, NamedSharding(mesh, P("x"))) * 2, jax.device_put(x)

    return called(run, floats(4))


@program(devices=4, gradient=False)
def explicit_axes_and_resharding() -> Call:
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)

    with jax.set_mesh(mesh):
        x = jax.device_put(floats(4, 4), P("x", None))

    @jax.jit
    def direct(v: Any) -> Any:
        return jax.sharding.reshard(v * 2, NamedSharding(mesh, P(None, "y"))).sum(0)

    return called(direct, x)


@program(devices=4, gradient=False, since=(0, 9))
def ragged_all_to_all_of_rows() -> Call:
    mesh = _line()

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("i"),) * 6, out_specs=P("i"), check_vma=False)
    def run(x: Any, out: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return lax.ragged_all_to_all(x, out, a, b, c, d, axis_name="i")

    ones = np.ones(16, np.int32)
    starts = np.tile(np.arange(4, dtype=np.int32), 4)
    outs = np.repeat(np.arange(4, dtype=np.int32), 4)
    return called(run, floats(16), np.zeros(16, np.float32), starts, ones, outs, ones, _bits=False)


@program(devices=4, gradient=False)
def ring_attention() -> Call:
    mesh = _line()

    @partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    def attend(q: Any, k: Any, v: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            out, total, top, k, v = carry
            scores = q @ k.T
            new = jnp.maximum(top, scores.max(1))
            weight = jnp.exp(scores - new[:, None])
            fix = jnp.exp(top - new)
            ring = [(j, (j + 1) % 4) for j in range(4)]
            return (
                out * fix[:, None] + weight @ v, total * fix + weight.sum(1), new,
                lax.ppermute(k, "i", ring), lax.ppermute(v, "i", ring),
            ), None  # fmt: skip

        start = (jnp.zeros_like(q), jnp.zeros(q.shape[0]), jnp.full(q.shape[0], -jnp.inf), k, v)
        (out, total, *_), _ = lax.scan(step, start, None, 4)
        return out / total[:, None]

    return called(attend, floats(8, 4), floats(8, 4) * 2, floats(8, 4) * 3)


@program(devices=4, gradient=False)
def pmap_of_a_sum() -> Call:
    mapped = jax.pmap(lambda x, i: x / lax.psum(x, "d") + i, axis_name="d")
    return called(mapped, floats(4, 2), integers(4))
