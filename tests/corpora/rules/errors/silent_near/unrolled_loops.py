"""Loops that resemble those of `silent/unrolled_loops.py`, and are fine."""

import jax
import jax.numpy as jnp


@jax.jit
def inner_loop(key, ra, rb):
    key, shard = jax.random.split(key)
    gate = jax.random.uniform(shard, (8, 1))
    return key, 0.5 * (ra + gate * ra + (1 - gate) * rb), 0.5 * (rb + gate * ra + (1 - gate) * rb)


def sample(key):
    """https://github.com/jax-ml/jax/issues/2777, with a scan.

    Example inputs:
        key: key<fry>[]
    """
    ra = jnp.array([[1.0, 0.0]] * 8)
    rb = jnp.array([[0.0, 1.0]] * 8)
    (_, ra, _), _ = jax.lax.scan(lambda c, _: (inner_loop(*c), None), (key, ra, rb), length=32)
    return ra


def block(x, w):
    return jax.nn.gelu(x @ w)


def two_blocks(x, w, v):
    """https://github.com/huggingface/diffusers/issues/1874: a few layers of other sizes.

    Example inputs:
        x: f32[8, 64]
        w: f32[64, 128]
        v: f32[128, 64]
    """
    for weights in (w, v):
        x = block(x, weights)
    return x


def rollout(state, actions):
    """https://github.com/jax-ml/jax/issues/16611: a loop of few iterations.

    Example inputs:
        state: f32[16, 16]
        actions: f32[8, 16, 16]
    """
    for t in range(8):
        state = block(state, actions[t])
    return state


def residual(x, n, unroll=True):
    """The program chooses.

    Example inputs:
        x: f32[16, 16]
        n = 20
    """
    for _ in range(n):
        x = block(x, x)
    return x
