"""Loops whose length is the same for the whole batch.

https://github.com/jax-ml/jax/issues/1190
"""

import jax
import jax.numpy as jnp


def fixed(xs):
    """
    Example inputs:
        xs: f32[64, 16, 16]
    """
    return jax.vmap(lambda x: jax.lax.fori_loop(0, 10, lambda i, s: s @ s, x))(xs)


def counted(xs, n):
    """
    Example inputs:
        xs: f32[64, 16, 16]
        n: i32[]
    """
    return jax.vmap(lambda x: jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] @ s[1]), (0, x)))(xs)


def one(x):
    """
    Example inputs:
        x: f32[16]
    """
    return jax.lax.while_loop(lambda s: jnp.any(s > 1.0), lambda s: s * 0.5, x)


def mapped(xs):
    """
    Example inputs:
        xs: f32[64, 16]
    """
    return jax.lax.map(one, xs)
