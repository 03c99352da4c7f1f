"""Copies, arrays that are computed, and numbers.

https://github.com/jax-ml/jax/issues/9635
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=0)
def update(params, target, batch):
    return params - 0.1 * (params - target) * batch


def train(params, batches):
    target = jnp.copy(params)
    for batch in batches:
        params = update(params, target, batch)
    return params


def tree(params, batches):
    target = jax.tree.map(jnp.copy, params)
    for batch in batches:
        params = update(params, target, batch)
    return params


def computed(x):
    y = jnp.asarray(x, dtype=jnp.bfloat16)
    z = update(x, 1.0, 2.0)
    return z, y.shape


def both(w):
    return update(w, w + 0, 1.0)


def numbers(w):
    return update(1.0, 1.0, 1.0)
