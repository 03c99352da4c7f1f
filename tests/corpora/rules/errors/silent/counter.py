"""A jitted function counts in a global: it counts while tracing only.

https://github.com/jax-ml/jax/issues/1348
"""

import jax
import jax.numpy as jnp

g = 0


@jax.jit
def f():
    global g
    g = g + 1  # JX450
    return g


print(f(), f(), f())
