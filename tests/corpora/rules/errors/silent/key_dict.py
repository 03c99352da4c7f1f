"""A key of a dict is drawn from in each step.

https://github.com/pyro-ppl/numpyro/pull/263
"""

import jax
import jax.numpy as jnp


def train(state, n):
    total = 0.0
    for _ in range(n):
        total = total + jax.random.normal(state["key"], (3,))  # JX403
    return total
