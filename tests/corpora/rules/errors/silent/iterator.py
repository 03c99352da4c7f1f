"""`next` of an iterator in the body of a loop: every iteration has the same batch.

https://github.com/jax-ml/jax/issues/3567
"""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def run_epoch(params, batches):
    def body(i, params):
        batch = next(iterator)  # JX414
        return params - 0.1 * batch

    return lax.fori_loop(0, 10, body, params)


iterator = iter([jnp.ones(3), jnp.zeros(3)])
