"""Functions that run on several devices, which need not be present.

Open this file in your editor, or try `jaxsight kernels examples/meshes.py:step --target
cuda:h100x8`.
"""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

ring = jax.make_mesh((8,), ("sequence",), axis_types=(AxisType.Auto,))


def loss(weights, x, y):
    first, second = weights
    hidden = jax.nn.gelu(x @ first)
    return jnp.mean((hidden @ second - y) ** 2)


def step(weights, x, y):
    """The gradient of an MLP: the batch is divided over `data`, the hidden axis over `model`.

    XLA inserts an all-reduce wherever the terms of a sum are on several devices.

    Example inputs:
        mesh: data=2, model=4
        weights: (bf16[D, H@model], bf16[H@model, D])
        x, y: bf16[1024@data, D]
        where D=4096, H=16384
    Expect (h100x8): moved <= 80 MiB, all-gathers == 0
    """
    return jax.grad(loss)(weights, x, y)


@functools.partial(
    jax.shard_map, mesh=ring, in_specs=P(None, "sequence"), out_specs=P(None, "sequence")
)
def ring_attention(q, k, v):
    """Attention over a sequence that is divided over 8 devices, which pass keys and values around.

    Example inputs:
        q, k, v: f32[4, 8192, 8, 64]
    """
    devices = jax.lax.axis_size("sequence")
    around = [(device, (device + 1) % devices) for device in range(devices)]
    scaled = q * q.shape[-1] ** -0.5

    def attend(carry, _):
        total, weight, largest, k, v = carry
        scores = jnp.einsum("bqhd,bkhd->bqhk", scaled, k)
        new = jnp.maximum(largest, scores.max(-1))
        old = jnp.exp(largest - new)
        now = jnp.exp(scores - new[..., None])
        total = total * old[..., None] + jnp.einsum("bqhk,bkhd->bqhd", now, v)
        weight = weight * old + now.sum(-1)
        k, v = jax.lax.ppermute((k, v), "sequence", around)
        return (total, weight, new, k, v), None

    zero = jnp.zeros_like(q)
    start = zero, zero[..., 0], zero[..., 0] - jnp.inf, k, v
    (total, weight, *_), _ = jax.lax.scan(attend, start, length=devices)
    return total / weight[..., None]
