"""A Cholesky factorization that fails returns NaN; it raises no `LinAlgError`.

https://github.com/jax-ml/jax/pull/8468
"""

import jax
import jax.numpy as jnp
import numpy as np


def factor(a):
    try:
        return jnp.linalg.cholesky(a)
    except np.linalg.LinAlgError:  # JX454
        return jnp.linalg.cholesky(a + 1e-6 * jnp.eye(a.shape[0]))
