"""`jnp.empty` as an accumulator: since JAX 0.11 it is not zero.

https://github.com/jax-ml/jax/pull/38760
"""

import jax
import jax.numpy as jnp


def histogram(i):
    """
    Example inputs:
        i: i32[64]
    """
    counts = jnp.empty(16)
    return counts.at[i].add(1.0)  # JX451
