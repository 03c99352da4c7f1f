"""A list holds the same key twice.

https://github.com/blackjax-devs/blackjax/issues/53
"""

import jax
import jax.numpy as jnp


def pair(key):
    """
    Example inputs:
        key = jax.random.key(0)
    """
    keys = [key, key]
    return jax.random.normal(keys[0], (3,)) + jax.random.uniform(keys[1], (3,))  # JX403
