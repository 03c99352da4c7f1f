"""Each iteration has another shape.

https://github.com/jax-ml/jax/issues/19429
"""

import jax
import jax.numpy as jnp


@jax.jit
def fn(x):
    return jnp.sum(jnp.sin(x))


for i in range(0, 1001):
    res = fn(jnp.zeros(i))  # JX306
