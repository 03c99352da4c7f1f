"""`np.errstate` has no effect on JAX.

https://github.com/jax-ml/jax/issues/30
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def ratio(x, y):
    with np.errstate(divide="raise"):  # JX454
        return x / y
