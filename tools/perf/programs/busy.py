"""A function that keeps a tracer busy for seconds."""

import jax.numpy as jnp


def unrolled(x):
    """Thousands of equations.

    Example inputs:
        x: f32[64]
    """
    for step in range(6000):
        x = jnp.sin(x) * 0.5000 + step
    return x
