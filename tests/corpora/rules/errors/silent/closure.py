"""A variable that a jitted function captured is assigned again, and the function is called again.

https://github.com/jax-ml/jax/issues/1426
"""

import jax
import jax.numpy as jnp


def test_retain():
    a = 10

    def loss(val):
        return jnp.sum(val[:2] ** 2 + val[2:] ** 3) * a  # JX450

    grad = jax.jit(jax.grad(loss))
    first = grad(jnp.array([2.0, 3.0, 4.0, 5.0]))
    a = 20
    return first, grad(jnp.array([2.0, 3.0, 4.0, 5.0]))
