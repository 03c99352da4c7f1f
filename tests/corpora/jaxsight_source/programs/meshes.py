"""Programs over a mesh of eight devices, as people write them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


def _mesh(kind: AxisType = AxisType.Auto) -> Any:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(kind,) * 2)


def _line(name: str = "stage", kind: AxisType = AxisType.Auto) -> Any:
    return jax.make_mesh((8,), (name,), axis_types=(kind,))


def _put(mesh: Any, x: Any, *spec: Any) -> Any:
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def _parameters(mesh: Any) -> Any:
    return {
        "up": _put(mesh, floats(8, 16), None, "model"),
        "down": _put(mesh, floats(16, 8), "model", None),
        "bias": _put(mesh, floats(16), "model"),
    }


def _forward(parameters: Any, x: Any) -> Any:
    hidden = jax.nn.relu(x @ parameters["up"] + parameters["bias"])
    return hidden @ parameters["down"]


def _loss(parameters: Any, x: Any, y: Any) -> Any:
    return jnp.mean((_forward(parameters, x) - y) ** 2)


@program(devices=8)
def data_parallel_training_step() -> Call:
    mesh = _mesh()

    @jax.jit
    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(_loss)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slope), value

    x, y = _put(mesh, floats(8, 8), "data"), _put(mesh, floats(8, 8) * 2, "data")
    return called(step, _parameters(mesh), x, y)


@program(devices=8)
def training_step_not_jitted() -> Call:
    mesh = _mesh()

    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(_loss)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slope), value

    x, y = _put(mesh, floats(8, 8), "data"), _put(mesh, floats(8, 8) * 2, "data")
    return called(step, _parameters(mesh), x, y)


@program(devices=8, gradient=False)
def training_step_with_explicit_axes() -> Call:
    mesh = _mesh(AxisType.Explicit)

    @jax.jit
    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(_loss)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slope), value

    # The reduction over "model" needs its result's sharding, so "down" is not divided.
    parameters = {
        "up": _put(mesh, floats(8, 16), None, None),
        "down": _put(mesh, floats(16, 8), None, None),
        "bias": _put(mesh, floats(16), None),
    }
    x, y = _put(mesh, floats(8, 8), None, None), _put(mesh, floats(8, 8) * 2, None, None)
    return called(step, parameters, x, y)


@program(devices=8, gradient=False)
def explicit_products_with_out_sharding() -> Call:
    mesh = _mesh(AxisType.Explicit)

    def run(x: Any, w: Any) -> Any:
        scattered = jnp.einsum("bd,df->bf", x, w, out_sharding=P("data", "model"))
        reduced = jnp.dot(x, w.T.reshape(8, 8).T, out_sharding=P("data", None))
        return scattered, reduced, scattered.sum(0), jnp.sin(scattered) * 2

    x = _put(mesh, floats(8, 8), "data", None)
    w = _put(mesh, floats(8, 8), None, None)
    return called(jax.jit(run), x, w, _mesh=mesh)


@program(devices=8, gradient=False)
def explicit_shapes() -> Call:
    mesh = _mesh(AxisType.Explicit)

    @jax.jit
    def run(x: Any) -> Any:
        wide = jnp.broadcast_to(x[:, None, :], (8, 2, 4))
        split = lax.reshape(x, (2, 4, 4), out_sharding=P("data", None, "model"))
        numbered = lax.broadcasted_iota(
            jnp.int32, (8, 4), 0, out_sharding=NamedSharding(mesh, P("data", None))
        )
        zeros = jnp.zeros((8, 4), out_sharding=NamedSharding(mesh, P("data", "model")))
        return wide, split, numbered + 1, zeros + x, jnp.zeros_like(x), x.T, x.astype(jnp.bfloat16)

    return called(run, _put(mesh, floats(8, 4), "data", "model"), _mesh=mesh)


@program(devices=8, gradient=False)
def explicit_gather_of_embeddings() -> Call:
    mesh = _mesh(AxisType.Explicit)

    @jax.jit
    def run(table: Any, ids: Any) -> Any:
        rows = table.at[ids].get(out_sharding=P("data", None, None))
        return jax.sharding.reshard(rows, NamedSharding(mesh, P("data", None, "model")))

    table = _put(mesh, floats(16, 8), None, None)
    return called(run, table, _put(mesh, integers(4, 8), "data", None), _mesh=mesh)


@program(devices=8, gradient=False)
def explicit_axes_with_an_automatic_part() -> Call:
    mesh = _mesh(AxisType.Explicit)

    @partial(jax.sharding.auto_axes, out_sharding=P("data", None))
    def inner(x: Any) -> Any:
        return lax.with_sharding_constraint(jnp.sin(x) @ x.T, P(None, "model"))

    def run(x: Any) -> Any:
        return inner(x) * 2

    return called(jax.jit(run), _put(mesh, floats(8, 8), "data", None), _mesh=mesh)


@program(devices=8)
def constraints_of_a_set_mesh() -> Call:
    mesh = _mesh()

    @jax.jit
    def run(x: Any, w: Any) -> Any:
        h = lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("data", "model")))
        h = lax.with_sharding_constraint(jnp.sin(h), NamedSharding(mesh, P(("data", "model"))))
        return lax.with_sharding_constraint(h, NamedSharding(mesh, P(P.UNCONSTRAINED, "model")))

    return called(run, _put(mesh, floats(8, 8), "data"), _put(mesh, floats(8, 8), None, "model"))


@program(devices=8)
def fully_sharded_layers() -> Call:
    mesh = _line("fsdp")

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("fsdp"), P("fsdp")), out_specs=P())
    def loss(weights: Any, batch: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return jnp.tanh(x @ lax.all_gather(w, "fsdp", axis=0, tiled=True)), None

        x, _ = lax.scan(jax.checkpoint(layer), batch, weights.transpose(1, 0, 2))
        return lax.pmean(jnp.mean(x**2), "fsdp")

    weights = _put(mesh, floats(8, 3, 8), "fsdp")
    return called(jax.jit(jax.value_and_grad(loss)), weights, _put(mesh, floats(16, 8), "fsdp"))


@program(devices=8)
def tensor_parallel_layer() -> Call:
    mesh = _mesh()

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("data", "model"), P("model", None)),
        out_specs=P("data", "model"),
    )
    def layer(x: Any, w: Any) -> Any:
        return lax.psum_scatter(x @ w, "model", scatter_dimension=1, tiled=True)

    return called(jax.jit(layer), floats(8, 16), floats(16, 8))


@program(devices=8)
def ring_of_all_attention() -> Call:
    mesh = _line("seq")

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P(None, "seq"), out_specs=P(None, "seq"))
    def attend(q: Any, k: Any, v: Any) -> Any:
        ring = [(j, (j + 1) % 8) for j in range(8)]

        def step(_: Any, carry: Any) -> Any:
            out, total, top, k, v = carry
            scores = jnp.einsum("bqd,bkd->bqk", q, k) * 0.5
            new = jnp.maximum(top, scores.max(-1))
            weight = jnp.exp(scores - new[..., None])
            fix = jnp.exp(top - new)
            out = out * fix[..., None] + jnp.einsum("bqk,bkd->bqd", weight, v)
            total = total * fix + weight.sum(-1)
            return out, total, new, lax.ppermute(k, "seq", ring), lax.ppermute(v, "seq", ring)

        start = jnp.zeros_like(q), q[..., 0] * 0, q[..., 0] * 0 - jnp.inf, k, v
        out, total, *_ = lax.fori_loop(0, 8, step, start)
        return out / total[..., None]

    return called(attend, *(_put(mesh, floats(2, 16, 4) * n, None, "seq") for n in (1, 2, 3)))


@program(devices=8, gradient=False)
def pipeline_of_stages() -> Call:
    mesh = _line()

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P("stage"))
    def run(weights: Any, batches: Any) -> Any:
        stage = lax.axis_index("stage")
        state = jnp.zeros_like(batches[0]) * weights[0, 0, 0]
        outputs = jnp.zeros_like(batches) * weights[0, 0, 0]
        perm = [(i, (i + 1) % 8) for i in range(8)]

        def step(i: Any, carry: Any) -> Any:
            state, outputs = carry
            state = jnp.where(stage == 0, batches[i % 4], state)
            state = jnp.tanh(state @ weights[0])
            outputs = outputs.at[(i - 7) % 4].set(jnp.where(stage == 7, state, outputs[0]))
            return lax.ppermute(state, "stage", perm), outputs

        return lax.fori_loop(0, 11, step, (state, outputs))[1]

    return called(jax.jit(run), floats(8, 4, 4), floats(4, 2, 4))


@program(devices=8)
def mixture_of_experts() -> Call:
    mesh = _line("expert")

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"),) * 3, out_specs=P("expert"))
    def run(x: Any, router: Any, weights: Any) -> Any:
        gates = jax.nn.softmax(x @ lax.all_gather(router[0], "expert", axis=1, tiled=True))
        chosen = jax.nn.one_hot(gates.argmax(-1), 8) * gates
        sent = jnp.einsum("te,td->etd", chosen, x)
        there = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
        back = lax.all_to_all(jnp.tanh(there @ weights[0]), "expert", 0, 0, tiled=True)
        return back.sum(0)

    return called(run, floats(16, 4), floats(8, 4, 1), floats(8, 4, 4))


@program(devices=8)
def nested_shard_maps() -> Call:
    mesh = _mesh()

    @partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"), axis_names={"data"})
    def outer(x: Any) -> Any:
        @partial(
            jax.shard_map, in_specs=P(None, "model"), out_specs=P(None, "model"),
            axis_names={"model"},
        )  # fmt: skip
        def inner(y: Any) -> Any:
            return y * lax.psum(y, "model")

        return inner(jnp.sin(x)) + lax.axis_index("data")

    return called(jax.jit(outer), floats(8, 8))


@program(devices=8)
def shard_map_of_the_set_mesh() -> Call:
    mesh = _mesh()

    def run(x: Any) -> Any:
        @partial(jax.shard_map, in_specs=P("data", "model"), out_specs=(P("data"), P(None)))
        def rows(y: Any) -> Any:
            return lax.psum(y, "model"), lax.pmax(y.max(), ("data", "model"))[None]

        total, most = rows(x)
        return total * most.sum() + x.sum()

    return called(jax.jit(run), _put(mesh, floats(8, 8), "data", "model"), _mesh=mesh)


@program(devices=8, gradient=False)
def shard_map_over_an_abstract_mesh() -> Call:
    mesh = _mesh().abstract_mesh
    rows = NamedSharding(mesh, P("data"))

    @jax.jit
    def run(x: Any) -> Any:
        mapped = jax.shard_map(
            lambda y: lax.psum(y, "model"), mesh=mesh, in_specs=P("data", "model"), out_specs=P("data")
        )  # fmt: skip
        return lax.with_sharding_constraint(mapped(x) + 1, rows)

    return called(run, _put(_mesh(), floats(8, 8), "data", "model"), _mesh=_mesh())


@program(devices=8)
def after_a_shard_map() -> Call:
    mesh = _mesh()

    def run(x: Any, w: Any) -> Any:
        mapped = jax.shard_map(
            lambda y: y - lax.pmean(y, "data"), mesh=mesh, in_specs=P("data"), out_specs=P("data")
        )
        y = mapped(x)
        h = jax.nn.gelu(y @ w) + jnp.arange(8.0)
        h = jnp.concatenate([h, h * 2], 1).reshape(4, 2, 16).transpose(1, 0, 2)
        return jnp.where(h > 0, h, jnp.exp(h)).astype(jnp.bfloat16), jnp.sort(y, 0)[::2], y[1:3]

    return called(run, floats(8, 8), floats(8, 8))


@program(devices=8, gradient=False)
def permuted_devices() -> Call:
    devices = np.array(jax.devices()[:8][::-1]).reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("model", "data"))

    @jax.jit
    def run(x: Any) -> Any:
        return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, ("data", "model"))))

    return called(run, _put(mesh, floats(8, 8), "data"))


@program(devices=8, gradient=False)
def jit_with_shardings_over_a_mesh() -> Call:
    mesh = _mesh()
    rows, columns = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))

    @partial(jax.jit, in_shardings=(rows, columns), out_shardings=NamedSharding(mesh, P()))
    def product(x: Any, w: Any) -> Any:
        return x @ w

    def run(x: Any, w: Any) -> Any:
        moved = jax.device_put((x, w), (rows, columns))
        return product(*moved), jax.device_put(x, NamedSharding(mesh, P("data", "model")))

    return called(run, floats(8, 8), floats(8, 8))


@program(devices=8, gradient=False)
def collectives_whose_variance_is_checked() -> Call:
    mesh = _mesh()

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("data"), P()),
        out_specs=(P("data"), P("data"), P(), P(("data", "model")), P()),
    )
    def run(x: Any, w: Any) -> Any:
        rows = lax.all_to_all(x.reshape(2, 2, 8), "data", 0, 1).reshape(4, 8)
        ring = lax.ppermute(x, "data", [(0, 1), (1, 0)])
        least = lax.pmax(x.sum(), "data") + w[0]
        both = x[:1, :4] * lax.axis_index(("data", "model"))
        total = lax.psum(both.sum(), ("data", "model"))
        return rows, ring, least + w.sum(), both, total

    return called(run, floats(8, 8), floats(4))


@program(devices=8)
def vmap_of_a_shard_map() -> Call:
    mesh = _line("i")

    def run(x: Any) -> Any:
        mapped = jax.shard_map(
            lambda y: lax.psum(y, "i") + y, mesh=mesh, in_specs=P("i"), out_specs=P("i")
        )
        return jax.vmap(mapped)(x), jax.vmap(mapped, in_axes=1, out_axes=1)(x)

    return called(run, floats(8, 8))


@program(devices=8)
def random_numbers_on_a_mesh() -> Call:
    mesh = _mesh()

    @jax.jit
    def run(key: Any, x: Any) -> Any:
        kept = jax.random.bernoulli(key, 0.5, x.shape)
        return lax.with_sharding_constraint(
            jnp.where(kept, x * 2, 0), NamedSharding(mesh, P("data"))
        )

    return called(run, jax.random.key(0), _put(mesh, floats(8, 8), "data"))


@program(devices=8)
def captured_arrays_on_a_mesh() -> Call:
    mesh = _mesh()
    table, scale = _put(mesh, floats(8, 8), "data"), _put(mesh, np.float32(2))

    def run(x: Any) -> Any:
        return x @ table * scale

    return called(jax.jit(run), _put(mesh, floats(8, 8), None, "model"))


@program(devices=8, gradient=False)
def pmap_of_a_training_step() -> Call:
    @partial(jax.pmap, axis_name="batch", in_axes=(None, 0), out_axes=(None, 0))
    def step(w: Any, x: Any) -> Any:
        value, slope = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - 0.1 * lax.pmean(slope, "batch"), value

    return called(step, floats(4), floats(8, 2, 4))
