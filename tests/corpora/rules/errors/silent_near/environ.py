"""The environment is read once, when the module is imported.

https://github.com/google/brax/pull/199
"""

import os

import jax
import jax.numpy as jnp

FAST = os.environ.get("FAST", "0") == "1"
os.environ["XLA_FLAGS"] = "--xla_dump_to=/tmp"


@jax.jit
def layer(x):
    return jnp.tanh(x) if FAST else jax.nn.softmax(x)


def backend():
    return os.environ.get("JAX_PLATFORMS", "cpu")
