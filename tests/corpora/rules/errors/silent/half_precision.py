"""A NumPy scalar promotes.

https://github.com/jax-ml/jax/issues/7368
"""

import jax
import jax.numpy as jnp
import numpy as np


def scaled(q):
    """
    Example inputs:
        q: bf16[8, 16]
    """
    return q / np.sqrt(16)  # JX308
