"""Static arguments that stay the same, a traced step number, and shapes that do.

https://github.com/jax-ml/jax/issues/4274
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames=("n", "mode"))
def step(w, n, mode="a"):
    return w * n


@jax.jit
def traced(w, i):
    return w * i


def train(w):
    for i in range(100):
        w = step(w, 3)
        w = traced(w, i)
        w = step(w, n=4, mode="b")
    return w


def few(w):
    for n in (1, 2):
        w = step(w, n)
    return w


def rows(x):
    return [traced(x[i], i) for i in range(10)]


def blocks(x):
    out = []
    for i in range(0, 64, 8):
        out.append(traced(x[i : i + 8], 1))
    return out


def buckets(batches):
    for batch in batches:
        traced(batch, 1)


@jax.jit
def outer(x):
    for i in range(1, 100):
        x = x + jnp.sum(traced(x[:i], 1))
    return x
