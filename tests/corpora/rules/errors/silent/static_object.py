"""A static argument is changed in place: its hash stays, so the compiled call keeps the old data.

https://github.com/jax-ml/jax/issues/9024
"""

import jax
import jax.numpy as jnp


class Holder:
    def __init__(self, data):
        self.data = data


def get(holder):
    return holder.data * 2


jitted = jax.jit(get, static_argnums=0)
m = Holder(3.0)
first = jitted(m)
m.data += 1  # JX450
second = jitted(m)
