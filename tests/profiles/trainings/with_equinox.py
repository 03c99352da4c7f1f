"""Train an attention block of equinox with optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, 64, key=first)
        self.mlp = eqx.nn.MLP(64, 64, 128, 1, key=second)
        self.norm = eqx.nn.LayerNorm(64)

    def __call__(self, x):
        y = jax.vmap(self.norm)(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(jax.vmap(self.norm)(x))


def loss(block, x, y):
    return jnp.mean((jax.vmap(block)(x) - y) ** 2)


@eqx.filter_jit
def train_step(block, state, optimizer, x, y):
    value, grads = eqx.filter_value_and_grad(loss)(block, x, y)
    updates, state = optimizer.update(grads, state, eqx.filter(block, eqx.is_array))
    return eqx.apply_updates(block, updates), state, value


def main():
    block = Block(jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(block, eqx.is_array))
    x, y = jnp.ones((16, 64, 64)), jnp.zeros((16, 64, 64))
    for _ in range(12):
        block, state, value = train_step(block, state, optimizer, x, y)
    print("loss", float(value))


if __name__ == "__main__":
    main()
