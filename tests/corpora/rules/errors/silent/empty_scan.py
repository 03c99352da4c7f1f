"""A sum starts from `jnp.empty`.

https://docs.jax.dev/en/latest/_autosummary/jax.numpy.empty.html
"""

import jax
import jax.numpy as jnp


def total(xs):
    """
    Example inputs:
        xs: f32[32, 8]
    """
    return jax.lax.fori_loop(0, 32, lambda i, s: s + xs[i], jnp.empty(8))  # JX451
