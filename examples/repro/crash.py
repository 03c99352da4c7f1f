"""A training step that ends JAX 0.10.2 with a segmentation fault (jax#39257)."""

import jax
import jax.numpy as jnp
import numpy as np


def layer(parameters, hidden):
    for index in range(20):
        hidden = jnp.tanh(hidden @ parameters["w"] + parameters["b"]) * jnp.cos(hidden) + index
    return hidden


@jax.jit
def step(parameters, x, observations, likelihoods):
    def loss(parameters):
        hidden, _ = jax.lax.scan(lambda h, row: (layer(row, h), None), x, parameters)
        hidden = jax.vmap(lambda row: row / jnp.linalg.norm(row))(hidden)
        return jnp.sum(hidden**2)

    gradient = jax.grad(loss)(parameters)
    spread = observations[..., None, None, None, None, None]
    return gradient, jnp.log(jnp.maximum(jnp.sum(spread * likelihoods, axis=2), 2.2e-16))


generator = np.random.default_rng(0)
parameters = {
    "w": jnp.asarray(generator.normal(size=(3, 4, 4)), jnp.float32),
    "b": jnp.zeros((3, 4)),
}
step(
    parameters,
    jnp.ones((5, 4)),
    jnp.ones((10, 4, 6), jnp.float32),
    jnp.ones((10, 4, 6, 9, 9, 9, 9, 9), jnp.float32),
)
