"""A layer: what most hovers are about."""

import jax
import jax.numpy as jnp


def layer(x, w, b):
    """A dense layer.

    Example inputs:
        x: f32[32, 128]
        w: f32[128, 64]
        b: f32[64]
    """
    hidden = jnp.tanh(x @ w + b)
    return hidden * 0.5000 + jax.nn.relu(hidden).sum(axis=-1, keepdims=True)


ARGUMENTS = (
    jax.ShapeDtypeStruct((32, 128), "float32"),
    jax.ShapeDtypeStruct((128, 64), "float32"),
    jax.ShapeDtypeStruct((64,), "float32"),
)
