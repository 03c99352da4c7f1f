"""The function is jitted again after each change, which traces it again.

https://github.com/jax-ml/jax/issues/1426
"""

import jax
import jax.numpy as jnp


def losses(x):
    out = []
    for a in (1.0, 2.0):

        @jax.jit
        def loss(v):
            return a * jnp.sum(v)

        out.append(loss(x))
    return out
