"""Train a perceptron in plain JAX."""

import jax
import jax.numpy as jnp


def layer(w, b, x):
    return jnp.tanh(x @ w + b)


def loss(params, x, y):
    for w, b in params:
        x = layer(w, b, x)
    return jnp.mean((x - y) ** 2)


@jax.jit
def train_step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    params = [(0.1 * jax.random.normal(key, (128, 128)), jnp.zeros(128)) for key in keys]
    x, y = jnp.ones((256, 128)), jnp.zeros((256, 128))
    for _ in range(12):
        params, value = train_step(params, x, y)
    print("loss", float(value))


if __name__ == "__main__":
    main()
