"""Constants, defaults that are chosen before the first call, and a value that is passed.

https://github.com/jax-ml/jax/issues/1426
"""

import sys

import jax
import jax.numpy as jnp

RATE = 0.1
DEPTH = 2
if sys.platform == "win32":
    DEPTH = 1

try:
    import numpy as backend
except ImportError:
    backend = None


@jax.jit
def step(w, g):
    return w - RATE * DEPTH * g


@jax.jit
def with_rate(w, g, rate):
    return w - rate * g


rate = 0.1
w = jnp.ones(3)
for _ in range(3):
    w = with_rate(w, jnp.ones(3), rate)
    rate = rate * 0.5


def untraced(w):
    return w * rate
