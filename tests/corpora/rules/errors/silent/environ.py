"""A flag of the environment is read in a jitted function: the first call decides.

https://github.com/google/brax/pull/199
"""

import os

import jax
import jax.numpy as jnp


@jax.jit
def layer(x):
    if os.environ.get("FAST", "0") == "1":  # JX414
        return jnp.tanh(x)
    return jax.nn.softmax(x)
