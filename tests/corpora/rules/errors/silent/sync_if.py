"""A test of the loss in each step.

https://github.com/Nerogar/OneTrainer/pull/1608
"""

import jax
import jax.numpy as jnp


@jax.jit
def step(w):
    return w * 0.9, jnp.sum(w * w)


def minimize(w, tolerance):
    for _ in range(1000):
        w, value = step(w)
        if value < tolerance:  # JX455
            break
    return w
