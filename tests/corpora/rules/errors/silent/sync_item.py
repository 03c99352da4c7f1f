"""`.item()` of the loss in each step.

https://github.com/tillahoffmann/jax-mps/pull/180
"""

import jax
import jax.numpy as jnp


def loss_of(params, batch):
    return jnp.mean((params - batch) ** 2)


update = jax.jit(jax.value_and_grad(loss_of))


def train(params, batches):
    total = 0.0
    for batch in batches:
        loss, grads = update(params, batch)
        params = params - 0.1 * grads
        total += loss.item()  # JX455
    return params, total
