"""A cache of shapes that is filled while tracing, and a count of traces.

https://github.com/patrick-kidger/equinox/pull/568
"""

import jax
import jax.numpy as jnp

SIZES = {}
TRACES = 0


@jax.jit
def f(x):
    global TRACES
    TRACES += 1
    SIZES[x.shape] = x.size
    return x * 2
