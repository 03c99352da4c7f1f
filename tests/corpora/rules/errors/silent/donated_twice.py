"""A donated buffer is passed a second time in the same call.

https://github.com/jax-ml/jax/issues/9635
"""

import jax
import jax.numpy as jnp


def blend(x, y):
    return 0.9 * x + 0.1 * y


f = jax.jit(blend, donate_argnums=(0,))
w = jnp.zeros(10)
out = f(w, w)  # JX421
