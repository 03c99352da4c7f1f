"""Buffers that are written in full, or whose shape alone is read.

https://docs.jax.dev/en/latest/_autosummary/jax.numpy.empty.html
"""

import jax
import jax.numpy as jnp


def filled(x):
    """
    Example inputs:
        x: f32[16, 4]
    """
    out = jnp.empty_like(x)
    out = out.at[1:].set(x[1:] - x[:-1])
    out = out.at[0].set(x[0])
    return out


def all_set(x):
    """
    Example inputs:
        x: f32[16]
    """
    return jnp.empty(16).at[:].set(x)


def rows(x):
    """
    Example inputs:
        x: f32[16, 4]
    """
    return jax.lax.fori_loop(0, 16, lambda i, o: o.at[i].set(2 * x[i]), jnp.empty((16, 4)))


def none(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.concatenate([jnp.empty((0,)), x])


def start(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x + jnp.zeros_like(jnp.empty_like(x))


def zeros(i):
    """
    Example inputs:
        i: i32[64]
    """
    return jnp.zeros(16).at[i].add(1.0)
