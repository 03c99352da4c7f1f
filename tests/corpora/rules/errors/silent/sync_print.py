"""The loss is printed in each step.

https://github.com/jolibrain/joliGEN/pull/374
"""

import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.1 * x, jnp.sum(w * x)


w = jnp.ones(8)
for i in range(10000):
    w, loss = step(w, jnp.ones(8))
    print(f"step {i}: loss {loss:.3f}")  # JX455
