"""jax#39103 in a training step of a Flax model that monitors its projections."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.lamb(1e-3)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (32, 32, 32):
            y = nn.LayerNorm()(x)
            y = nn.gelu(nn.Dense(width)(y))
            y = nn.GroupNorm(4)(y[:, None, :])[:, 0, :]
            x = nn.Dense(x.shape[-1])(y) + x
        return nn.Dense(10)(x)


def main(parameters, state, points, labels):
    projection = parameters["params"]["Dense_0"]["kernel"][:3, :3]
    largest = jnp.max(jnp.abs(projection @ points.T), axis=0)
    batch = jnp.tile(points[:16], (1, 4)) / (1.0 + largest[:16, None])

    def loss(parameters):
        logits = Model().apply(parameters, batch)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value, largest


def inputs():
    rng = np.random.default_rng(0)
    parameters = Model().init(jax.random.key(0), np.zeros((16, 12), "f4"))
    return (
        parameters,
        OPTIMIZER.init(parameters),
        rng.normal(size=(40_000, 3)).astype("f4"),
        rng.integers(0, 10, size=16).astype("i4"),
    )


if __name__ == "__main__":
    jitted = np.asarray(jax.jit(main)(*inputs())[-1])
    with jax.disable_jit():
        eager = np.asarray(main(*inputs())[-1])
    if not np.allclose(jitted, eager, rtol=1e-2):
        raise AssertionError("jit and eager differ")
