"""Generated tokens grow by `concatenate`, and the model is called with every length.

https://github.com/numpy/numpy/issues/10823
"""

import jax
import jax.numpy as jnp


@jax.jit
def logits(tokens):
    return jnp.cumsum(tokens)


def generate(tokens, n):
    for _ in range(n):
        token = jnp.argmax(logits(tokens))
        tokens = jnp.concatenate([tokens, token[None]])  # JX452
    return tokens
