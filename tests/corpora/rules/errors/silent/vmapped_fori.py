"""A `fori_loop` with a batched bound is such a loop, too.

https://github.com/jax-ml/jax/issues/441
"""

import jax
import jax.numpy as jnp


def powers(m, n):
    return jax.lax.fori_loop(0, n, lambda i, p: p @ m, m)  # JX453


def all_powers(m, n):
    """
    Example inputs:
        m: f32[32, 64, 64]
        n: i32[32]
    """
    return jax.vmap(powers)(m, n)
