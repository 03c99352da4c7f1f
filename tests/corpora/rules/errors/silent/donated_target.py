"""The target network is the online network's own buffer.

https://github.com/google/flax/issues/5461
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=0)
def update(params, target, batch):
    return params - 0.1 * (params - target) * batch


def train(params, batches):
    target = params
    for batch in batches:
        params = update(params, target, batch)  # JX421
    return params
