"""xla#35719 in a training step of a network that is fed with counts of pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.nadam(1e-3))
LAYERS = 5


def network(parameters, x):
    for layer in parameters["layers"]:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
        gate, value = jnp.split(scaled @ layer["w"] + layer["b"], 2, axis=-1)
        x = x + jax.nn.silu(gate) * value
    return x @ parameters["out"]


def main(parameters, state, columns, targets):
    counted = []
    for first in range(3):
        for second in range(first):
            places = 30 * columns[first] + columns[second]
            counted.append(jnp.zeros(900, np.int32).at[places].add(1))
    batch = jnp.log1p(jnp.stack(counted).reshape(3, 30, 30).astype(np.float32))[:, :, :16]

    def loss(parameters):
        return jnp.mean(optax.huber_loss(network(parameters, batch), targets))

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def inputs():
    rng = np.random.default_rng(0)

    def layer():
        return {"w": 0.1 * rng.normal(size=(16, 32)).astype("f4"), "b": np.zeros(32, "f4")}

    parameters = {
        "layers": [layer() for _ in range(LAYERS)],
        "out": 0.1 * rng.normal(size=(16, 1)).astype("f4"),
    }
    columns = [rng.integers(0, 30, size=100_000).astype("i4") for _ in range(3)]
    return parameters, OPTIMIZER.init(parameters), columns, rng.normal(size=(3, 30, 1)).astype("f4")


if __name__ == "__main__":
    compiled = jax.jit(main).lower(*inputs()).compile()
    used = compiled.memory_analysis().temp_size_in_bytes
    if used > 1_000_000:
        raise AssertionError(f"temporaries of {used} bytes")
