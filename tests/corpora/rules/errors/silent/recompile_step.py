"""The step number is static: every step compiles.

https://github.com/jax-ml/jax/issues/4274
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnums=(1,))
def step(w, i):
    return w * 0.99**i


def train(w):
    for i in range(1000):
        w = step(w, i)  # JX306
    return w
