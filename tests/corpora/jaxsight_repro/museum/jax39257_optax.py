"""jax#39257 in a training step of a recurrent network, after inference over hidden states."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adam(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)),
)
LAYERS = 4


def cell(weights, carry, x):
    gates = x @ weights["x"] + carry @ weights["h"] + weights["b"]
    reset, update, new = jnp.split(gates, 3, axis=-1)
    new = jnp.tanh(jax.nn.sigmoid(reset) * new)
    update = jax.nn.sigmoid(update)
    carry = (1 - update) * carry + update * new
    return carry, carry


def network(parameters, x):
    for layer in parameters["layers"]:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-6)
        x = x * layer["scale"] + layer["shift"]
        _, x = jax.lax.scan(
            lambda h, t, layer=layer: cell(layer["cell"], h, t), jnp.zeros((4, 8)), x
        )
    return jax.nn.log_softmax(x @ parameters["out"])


def main(parameters, state, observed, likelihood, labels):
    evidence = jnp.sum(observed[..., None, None, None, None, None] * likelihood, axis=2)
    beliefs = jax.nn.softmax(jnp.log(jnp.maximum(jnp.max(evidence, axis=(2, 3, 4, 5)), 1e-16)))
    series = beliefs[:, :, :8]

    def loss(parameters):
        scores = network(parameters, series)
        return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], axis=-1))

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def inputs():
    rng = np.random.default_rng(0)

    def drawn(*shape):
        return rng.normal(size=shape, scale=0.3).astype("f4")

    def layer():
        weights = {"x": drawn(8, 24), "h": drawn(8, 24), "b": drawn(24)}
        return {"cell": weights, "scale": np.ones(8, "f4"), "shift": np.zeros(8, "f4")}

    parameters = {"layers": [layer() for _ in range(LAYERS)], "out": drawn(8, 5)}
    return (
        parameters,
        OPTIMIZER.init(parameters),
        np.ones((10, 4, 6), "f4"),
        np.ones((10, 4, 6, 9, 9, 9, 9, 9), "f4"),
        rng.integers(0, 5, size=(10, 4)).astype("i4"),
    )


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
