"""A rate that decays is a static keyword.

https://github.com/jax-ml/jax/issues/2072
"""

import jax
import jax.numpy as jnp


def sgd(w, g, rate):
    return w - rate * g


step = jax.jit(sgd, static_argnames=("rate",))


def train(w, gradients):
    rate = 0.1
    for g in gradients:
        w = step(w, g, rate=rate)  # JX306
        rate *= 0.99
    return w
