"""jax-ml/jax#25010: how to recompute the all-gathers that the partitioner inserts.

The report's layer, rewritten from the names in its HLO: a norm and two products under
`jax.checkpoint`, with weights that are divided as fully sharded data parallelism does.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("fsdp", "model"), axis_types=(AxisType.Auto,) * 2)


def on(*axes):
    return NamedSharding(mesh, P(*axes))


@jax.checkpoint
def layer(x, up, down):
    x = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    hidden = jax.nn.relu(x @ up)  # here
    return jax.lax.with_sharding_constraint(hidden @ down, on("fsdp", None, None))  # and here


@jax.jit
def f(x, up, down):
    """
    Example inputs:
        x: f32[16, 64, 512]
        up: f32[512, 2048]
        down: f32[2048, 512]
    """
    x = jax.lax.with_sharding_constraint(x, on("fsdp", None, None))
    up = jax.lax.with_sharding_constraint(up, on("fsdp", "model"))
    down = jax.lax.with_sharding_constraint(down, on("model", "fsdp"))
    return jax.grad(lambda *weights: layer(x, *weights).mean(), argnums=(0, 1))(up, down)
