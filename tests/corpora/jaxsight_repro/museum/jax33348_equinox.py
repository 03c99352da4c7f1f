"""jax#33348 in a training step of a convolutional Equinox model with a line search."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(optax.clip(1.0), optax.adamw(1e-3), optax.scale(0.5))


class Model(eqx.Module):
    convolutions: list
    norms: list
    mlp: eqx.nn.MLP

    def __init__(self, key):
        keys = jax.random.split(key, 5)
        self.convolutions = [eqx.nn.Conv2d(2, 2, 3, padding=1, key=key) for key in keys[:4]]
        self.norms = [eqx.nn.GroupNorm(1, 2) for _ in range(4)]
        self.mlp = eqx.nn.MLP(2 * 8 * 8, 10, 16, 2, key=keys[4])

    def __call__(self, x):
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = x + jax.nn.gelu(norm(convolution(x)))
        return jax.nn.log_softmax(self.mlp(x.ravel()))


def build():
    return Model(jax.random.key(0))


def settled():
    """Search for a step that changes nothing."""

    def step(x):
        jax.lax.fori_loop(0, 3, lambda i, state: state, 0)
        return jnp.zeros_like(x)

    return jax.lax.while_loop(lambda x: jnp.any(x != 0), step, jnp.zeros(2, np.int32))


def main(parameters, state, images, labels):
    shapes = eqx.filter_eval_shape(build)
    static = eqx.partition(shapes, lambda x: isinstance(x, jax.ShapeDtypeStruct))[1]

    def loss(parameters):
        scores = jax.vmap(eqx.combine(parameters, static))(images)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value, settled()


def inputs():
    rng = np.random.default_rng(0)
    parameters = eqx.filter(build(), eqx.is_array)
    return (
        parameters,
        OPTIMIZER.init(parameters),
        rng.normal(size=(4, 2, 8, 8)).astype("f4"),
        rng.integers(0, 10, size=4).astype("i4"),
    )


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
