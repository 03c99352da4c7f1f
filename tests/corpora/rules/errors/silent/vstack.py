"""Rows are stacked one by one.

https://github.com/jax-ml/jax/issues/919
"""

import jax
import jax.numpy as jnp


def rows(model, xs):
    out = jnp.zeros((0, 3))
    for x in xs:
        out = jnp.vstack((out, jnp.sin(x)[None, :]))  # JX452
    return out
