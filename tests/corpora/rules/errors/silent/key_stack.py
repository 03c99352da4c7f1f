"""One key is repeated for a batch.

https://github.com/patrick-kidger/equinox/pull/316
"""

import jax
import jax.numpy as jnp


def dropout(key, x):
    """
    Example inputs:
        key = jax.random.PRNGKey(0)
        x: f32[8, 4]
    """
    keys = jnp.stack([key] * 8)
    return jax.vmap(lambda k, v: v * jax.random.bernoulli(k, 0.5, v.shape))(keys, x)  # JX403
