"""A learning rate that the loop changes is a global of the jitted step.

https://openillumi.com/en/en-jax-jit-external-variable-implicit-argument-jaxpr
"""

import jax
import jax.numpy as jnp

rate = 0.1


@jax.jit
def step(params, gradient):
    return params - rate * gradient  # JX450


params = jnp.ones(4)
for epoch in range(10):
    params = step(params, jnp.ones(4))
    rate = rate * 0.5
