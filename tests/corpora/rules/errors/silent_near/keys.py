"""Keys that are replaced, folded or cloned.

https://github.com/jax-ml/jax/issues/2009
"""

import jax
import jax.numpy as jnp


class Noise:
    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)
        self.table = jax.random.normal(self.key, (3,))

    def sample(self, shape):
        self.key, subkey = jax.random.split(self.key)
        return jax.random.normal(subkey, shape)

    def at(self, i, shape):
        return jax.random.normal(jax.random.fold_in(self.key, i), shape)


def train(state, n):
    total = 0.0
    for i in range(n):
        state["key"], sub = jax.random.split(state["key"])
        total = total + jax.random.normal(sub, (3,))
    return total


def folded(state, n):
    return [jax.random.normal(jax.random.fold_in(state["key"], i)) for i in range(n)]


def replaced(state, n):
    for _ in range(n):
        key, subkey = jax.random.split(state.key)
        sample = jax.random.normal(subkey)
        state = state.replace(key=key)
    return sample


def each(keys, n):
    return [jax.random.normal(keys[i]) for i in range(n)]


def distinct(key):
    """
    Example inputs:
        key = jax.random.key(0)
    """
    keys = list(jax.random.split(key))
    return jax.random.normal(keys[0], (3,)) + jax.random.uniform(keys[1], (3,))
