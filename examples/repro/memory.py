"""Counts of pairs for a network: their temporaries are all alive at once (xla#35719)."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, columns):
    counts = []
    for first in range(3):
        for second in range(first):
            places = 30 * columns[first] + columns[second]
            counts.append(jnp.zeros(900, jnp.int32).at[places].add(1))
    batch = jnp.log1p(jnp.stack(counts).astype(jnp.float32)).reshape(3, 30, 30)

    def loss(weights):
        hidden = jax.nn.silu(batch @ weights["w"] + weights["b"])
        return jnp.mean((hidden - jnp.mean(hidden, axis=-1, keepdims=True)) ** 2)

    return jax.value_and_grad(loss)(weights)


generator = np.random.default_rng(0)
columns = [jnp.asarray(generator.integers(0, 30, size=100_000)) for _ in range(3)]
weights = {"w": jnp.asarray(generator.normal(size=(30, 30)), jnp.float32), "b": jnp.zeros(30)}
step(weights, columns)
