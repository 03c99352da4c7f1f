"""A method draws from a key that nothing ever replaces.

https://github.com/jax-ml/jax/issues/2009
"""

import jax
import jax.numpy as jnp


class Noise:
    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)

    def sample(self, shape):
        return jax.random.normal(self.key, shape)  # JX403
