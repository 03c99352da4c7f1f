"""A trajectory grows by `jnp.append` in a loop: each length is compiled and copied.

https://github.com/numpy/numpy/issues/10823
"""

import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    return x * 0.99


def simulate(x, n):
    trajectory = jnp.array([x])
    for _ in range(n):
        x = step(x)
        trajectory = jnp.append(trajectory, x)  # JX452
    return trajectory
