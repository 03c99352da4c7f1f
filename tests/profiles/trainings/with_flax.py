"""Train a convolutional network of flax with optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.LayerNorm()(x.reshape(len(x), -1))
        return nn.Dense(10)(x)


@jax.jit
def train_step(state, images, labels):
    def loss(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


def main():
    network = Network()
    images, labels = jnp.ones((32, 28, 28, 1)), jnp.zeros(32, int)
    params = network.init(jax.random.key(0), images)["params"]
    state = TrainState.create(apply_fn=network.apply, params=params, tx=optax.adam(1e-3))
    for _ in range(12):
        state, value = train_step(state, images, labels)
    print("loss", float(value))


if __name__ == "__main__":
    main()
