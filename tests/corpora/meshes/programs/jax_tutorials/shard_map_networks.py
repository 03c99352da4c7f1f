"""The networks of JAX's tutorial on shard_map (docs/notebooks/shard_map), restated.

Data parallelism, fully sharded data parallelism, tensor parallelism, both, and a pipeline.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

AUTO = jax.sharding.AxisType.Auto
batch_mesh = jax.make_mesh((8,), ("batch",), axis_types=(AUTO,))
feats_mesh = jax.make_mesh((8,), ("feats",), axis_types=(AUTO,))
both_mesh = jax.make_mesh((4, 2), ("batch", "feats"), axis_types=(AUTO,) * 2)
stage_mesh = jax.make_mesh((8,), ("stages",), axis_types=(AUTO,))
SIZES = [784, 128, 128, 128, 128, 128, 8]


def init(key=0):
    """Return weights and biases of the layers."""
    keys = jax.random.split(jax.random.key(key), len(SIZES) - 1)
    pairs = zip(SIZES[:-1], SIZES[1:], strict=True)
    return [(jax.random.normal(k, pair), jnp.zeros(pair[1])) for k, pair in zip(keys, pairs, strict=True)]


def predict(params, inputs):
    """Apply the layers."""
    for W, b in params:
        outputs = jnp.dot(inputs, W) + b
        inputs = jax.nn.relu(outputs)
    return outputs


def squared_error(params, inputs, targets):
    """Return the sum of squares."""
    return jnp.mean(jnp.sum((predict(params, inputs) - targets) ** 2, axis=-1))


@jax.jit
@partial(
    jax.shard_map,
    mesh=batch_mesh,
    in_specs=(P(), P("batch", None), P("batch", None)),
    out_specs=P(),
)
def loss_dp(params, inputs, targets):
    """The mean of the devices' losses."""
    return jax.lax.pmean(squared_error(params, inputs, targets), "batch")


@jax.jit
def gradient_dp(params, inputs, targets):
    """Data parallelism: the gradients are summed."""
    return jax.grad(loss_dp)(params, inputs, targets)


@partial(jax.remat, policy=lambda op, *_, **__: str(op) != "all_gather")
def predict_fsdp(params_frag, inputs):
    """Gather each layer's parameters before they are used."""
    for W_frag, b_frag in params_frag:
        W = jax.lax.all_gather(W_frag, "batch", tiled=True)
        b = jax.lax.all_gather(b_frag, "batch", tiled=True)
        outputs = jnp.dot(inputs, W) + b
        inputs = jax.nn.relu(outputs)
    return outputs


@jax.jit
def gradient_fsdp(params, inputs, targets):
    """Fully sharded data parallelism."""

    @partial(jax.shard_map, mesh=batch_mesh, in_specs=P("batch"), out_specs=P())
    def loss(params, inputs, targets):
        error = jnp.mean(jnp.sum((predict_fsdp(params, inputs) - targets) ** 2, axis=-1))
        return jax.lax.pmean(error, "batch")

    return jax.grad(loss)(params, inputs, targets)


def gemm_tp(inputs, W, b):
    """Multiply by a part of the weights, and scatter the sums over the features."""
    partial_sums = jnp.dot(inputs, W)
    return jax.lax.psum_scatter(partial_sums, "feats", scatter_dimension=1, tiled=True) + b


def predict_tp(params, inputs):
    """Apply layers of which each device has some features."""
    for W, b in params:
        outputs = gemm_tp(inputs, W, b)
        inputs = jax.nn.relu(outputs)
    return outputs


@jax.jit
def gradient_tp(params, inputs, targets):
    """Tensor parallelism."""

    @partial(
        jax.shard_map,
        mesh=feats_mesh,
        in_specs=(P("feats"), P(None, "feats"), P(None, "feats")),
        out_specs=P(),
    )
    def loss(params, inputs, targets):
        error = jnp.mean(jnp.sum((predict_tp(params, inputs) - targets) ** 2, axis=-1))
        return jax.lax.psum(error, "feats")

    return jax.grad(loss)(params, inputs, targets)


@jax.jit
def gradient_fsdp_tp(params, inputs, targets):
    """Both: parameters are divided over both axes, and gathered along one."""

    @partial(jax.remat, policy=lambda op, *_, **__: str(op) != "all_gather")
    def predict(params_frag, inputs):
        for W_frag, b_frag in params_frag:
            W = jax.lax.all_gather(W_frag, "batch", tiled=True)
            b = jax.lax.all_gather(b_frag, "batch", tiled=True)
            outputs = gemm_tp(inputs, W, b)
            inputs = jax.nn.relu(outputs)
        return outputs

    @partial(
        jax.shard_map,
        mesh=both_mesh,
        in_specs=(P(("feats", "batch")), P("batch", "feats"), P("batch", "feats")),
        out_specs=P(),
    )
    def loss(params, inputs, targets):
        error = jnp.sum((predict(params, inputs) - targets) ** 2, axis=-1)
        return jax.lax.pmean(jax.lax.psum(jnp.mean(error), "feats"), "batch")

    return jax.grad(loss)(params, inputs, targets)


def spmd_pipeline(stage, stage_params, inputs):
    """Pass microbatches from device to device; each applies its stage."""
    stages, microbatches = jax.lax.axis_size("stages"), len(inputs)
    index = jax.lax.axis_index("stages")
    state = jnp.zeros_like(inputs[0])
    outputs = jnp.zeros_like(inputs)
    for i in range(microbatches + stages - 1):
        state = jnp.where(index == 0, inputs[i % microbatches], state)
        state = stage(stage_params, state)
        kept = outputs.at[(i - stages + 1) % microbatches].set(state)
        outputs = jnp.where(index == stages - 1, kept, outputs)
        state = jax.lax.ppermute(state, "stages", [(s, (s + 1) % stages) for s in range(stages)])
    return jax.lax.psum(jnp.where(index == stages - 1, outputs, 0), "stages")


@jax.jit
@partial(
    jax.shard_map,
    mesh=stage_mesh,
    in_specs=(P("stages"), P("stages"), P()),
    out_specs=P(),
    check_vma=False,
)
def pipeline(Ws, bs, microbatches):
    """A pipeline of eight stages."""
    return spmd_pipeline(lambda p, x: jax.nn.relu(x @ p[0][0] + p[1][0]), (Ws, bs), microbatches)


@jax.jit
def pipeline_gradient(Ws, bs, microbatches):
    """The gradient of the pipeline, which passes the other way."""
    return jax.grad(lambda Ws: jnp.mean(pipeline(Ws, bs, microbatches) ** 2))(Ws)


@jax.jit
@partial(
    jax.shard_map,
    mesh=batch_mesh,
    in_specs=(P("batch"), P("batch"), P()),
    out_specs=P("batch"),
)
def mixture_of_experts(tokens, experts, router):
    """Expert parallelism: tokens travel to their expert's device and back."""
    count = jax.lax.axis_size("batch")
    capacity = tokens.shape[0] // count
    chosen = jnp.argmax(tokens @ router, axis=-1)
    slot = jnp.cumsum(jax.nn.one_hot(chosen, count, dtype=jnp.int32), axis=0)
    slot = jnp.take_along_axis(slot, chosen[:, None], axis=1)[:, 0] - 1
    buffer = jnp.zeros((count, capacity, tokens.shape[1])).at[chosen, slot].add(tokens, mode="drop")
    arrived = jax.lax.all_to_all(buffer, "batch", split_axis=0, concat_axis=0)
    worked = jax.nn.relu(jnp.einsum("ncd,df->ncf", arrived, experts[0]))
    back = jax.lax.all_to_all(worked, "batch", split_axis=0, concat_axis=0)
    return back.at[chosen, slot].get(mode="fill", fill_value=0)


def replicated_then_sharded(x):
    """A constraint in the middle of an automatically partitioned program."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(both_mesh, P("batch", "feats")))
    y = jnp.sin(x) @ x.T
    return jax.lax.with_sharding_constraint(y, NamedSharding(both_mesh, P("batch", None)))
