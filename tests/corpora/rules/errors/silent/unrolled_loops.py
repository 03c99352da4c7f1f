"""Python loops whose bodies are calls, drawn from threads.

A line with a fault ends with `# ` and the code of the rule that has to find it.
"""

import jax
import jax.numpy as jnp


@jax.jit
def inner_loop(key, ra, rb):
    key, shard = jax.random.split(key)
    gate = jax.random.uniform(shard, (8, 1))
    return key, 0.5 * (ra + gate * ra + (1 - gate) * rb), 0.5 * (rb + gate * ra + (1 - gate) * rb)


@jax.jit
def sample(key):
    """https://github.com/jax-ml/jax/issues/2777

    Example inputs:
        key: key<fry>[]
    """
    ra = jnp.array([[1.0, 0.0]] * 8)
    rb = jnp.array([[0.0, 1.0]] * 8)
    for _ in range(32):
        key, ra, rb = inner_loop(key, ra, rb)  # JX209
    return ra


def block(x, weights):
    w, v = weights
    return x + jax.nn.gelu(x @ w) @ v


def network(x, w, v):
    """https://github.com/huggingface/diffusers/issues/1874

    Example inputs:
        x: f32[8, 64]
        w: f32[24, 64, 128]
        v: f32[24, 128, 64]
    """
    for i in range(24):
        x = block(x, (w[i], v[i]))  # JX209
    return x


def policy(state, action):
    return jnp.tanh(state @ action), jnp.sum(state**2)


def rollout(state, actions):
    """https://github.com/jax-ml/jax/issues/16611

    Example inputs:
        state: f32[16, 16]
        actions: f32[100, 16, 16]
    """
    total = 0.0
    for t in range(100):
        state, reward = policy(state, actions[t])  # JX209
        total += reward
    return total
