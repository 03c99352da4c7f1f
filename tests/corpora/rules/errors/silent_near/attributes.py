"""Attributes that only `__init__` sets, and a pytree whose attributes are leaves.

https://docs.jax.dev/en/latest/faq.html#how-to-use-jit-with-methods
"""

from functools import partial

import jax
import jax.numpy as jnp


class Model:
    def __init__(self, scale):
        self.scale = scale
        self.calls = 0

    @partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return self.scale * x

    def __call__(self, x):
        self.calls += 1
        return self.apply(x)


@jax.tree_util.register_dataclass
class State:
    def __init__(self, w):
        self.w = w

    def reset(self):
        self.w = 0.0

    @jax.jit
    def twice(self):
        return 2 * self.w
