"""jax#39103 in a training step of an Equinox model whose inputs are whitened."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(16)
        self.attention = eqx.nn.MultiheadAttention(2, 16, key=first)
        self.mlp = eqx.nn.MLP(16, 16, 32, 1, key=second)

    def __call__(self, x):
        x = x + self.attention(*[jax.vmap(self.norm)(x)] * 3)
        return x + jax.vmap(self.mlp)(x)


class Model(eqx.Module):
    embed: eqx.nn.Linear
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 4)
        self.embed = eqx.nn.Linear(3, 16, key=keys[0])
        self.blocks = [Block(key) for key in keys[1:3]]
        self.head = eqx.nn.Linear(16, 1, key=keys[3])

    def __call__(self, x):
        x = jax.vmap(self.embed)(x)
        for block in self.blocks:
            x = block(x)
        return jnp.mean(jax.vmap(self.head)(x))


def build():
    return Model(jax.random.key(0))


def main(parameters, state, whitening, points, targets):
    static = eqx.partition(
        eqx.filter_eval_shape(build), lambda x: isinstance(x, jax.ShapeDtypeStruct)
    )[1]
    scores = jax.vmap(lambda row: jnp.sum((whitening @ row) ** 2))(points)
    weight = jax.nn.sigmoid(scores[0])
    batch = points[:32].reshape(4, 8, 3) / jnp.sqrt(1.0 + scores[:32].reshape(4, 8, 1))

    def loss(parameters):
        model = eqx.combine(parameters, static)
        predicted = jax.vmap(model)(batch)
        return weight * jnp.mean((predicted - targets) ** 2)

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value, scores


def inputs():
    rng = np.random.default_rng(0)
    parameters = eqx.filter(build(), eqx.is_array)
    return (
        parameters,
        OPTIMIZER.init(parameters),
        rng.normal(size=(3, 3)).astype("f4"),
        rng.normal(size=(40_000, 3)).astype("f4"),
        rng.normal(size=4).astype("f4"),
    )


if __name__ == "__main__":
    jitted = np.asarray(jax.jit(main)(*inputs())[-1])
    with jax.disable_jit():
        eager = np.asarray(main(*inputs())[-1])
    if not np.allclose(jitted, eager, rtol=1e-2):
        raise AssertionError("jit and eager differ")
