"""Programs that the editors show."""

from __future__ import annotations

ATTENTION = '''\
import jax
import jax.numpy as jnp


def attention(q, k, v):
    """Scaled dot-product attention.

    Example inputs:
        q, k, v: f32[4, 128, 8, 64]

    Example inputs (decode):
        q: f32[4, 1, 8, 64]
    """
    s = "😋"; scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def branch(x):
    """
    Example inputs:
        x: f32[3]
    """
    if x.sum() > 0: return x
    return -x


def plain(x, *, scale=2.0):
    return x * scale
'''

ROOT = '''\
import jax.numpy as jnp


def root(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)
'''

FUSED = '''\
import jax.numpy as jnp


def total(x):
    """
    Example inputs:
        x: f32[131072, 2]
    """
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + jnp.sum(k * x, axis=1, keepdims=True)
'''

IDENTITY = '''\
def f(x):
    """
    Example inputs:
        x: {type}
    """
    return x
'''
