"""Data that a loop replaces is a global of the jitted likelihood.

https://github.com/jax-ml/jax/issues/2515
"""

import jax
import jax.numpy as jnp
import numpy as np

x = np.ones(3)


@jax.jit
def likelihood(s, m):
    return jnp.sum(((x - m) / s) ** 2)  # JX450


for s in (1.0, 2.0):
    x = np.random.randn(3)
    print(likelihood(s, 0.5))
