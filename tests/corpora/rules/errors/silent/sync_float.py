"""Each step waits for the loss of the one before.

https://github.com/pyro-ppl/numpyro/pull/2247
"""

import jax
import jax.numpy as jnp


@jax.jit
def step(params, batch):
    loss, grads = jax.value_and_grad(lambda p: jnp.sum((p * batch) ** 2))(params)
    return params - 0.1 * grads, loss


def train(params, batches):
    losses = []
    for batch in batches:
        params, loss = step(params, batch)
        losses.append(float(loss))  # JX455
    return params, losses
