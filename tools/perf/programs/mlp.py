"""The gradient of an MLP that is divided over a mesh of 2×4 devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def divided(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*spec)))


def loss(weights, x, y, scale):
    first, second = weights
    hidden = jax.nn.gelu(divided(x, "data") @ divided(first, None, "model"))
    error = (hidden @ divided(second, "model") - y).astype("float32")
    return scale * jnp.mean(error**2)


def step(first, second, x, y):
    """The gradient by both weights.

    Example inputs:
        first: bf16[4096, 16384]
        second: bf16[16384, 4096]
        x: bf16[1024, 4096]
        y: bf16[1024, 4096]
    """
    return jax.grad(loss)((first, second), x, y, 0.5000)


ARGUMENTS = (
    jax.ShapeDtypeStruct((4096, 16384), "bfloat16"),
    jax.ShapeDtypeStruct((16384, 4096), "bfloat16"),
    jax.ShapeDtypeStruct((1024, 4096), "bfloat16"),
    jax.ShapeDtypeStruct((1024, 4096), "bfloat16"),
)
