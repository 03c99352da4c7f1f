"""Constants that the dtype of the program does not have, drawn from threads.

A line with a fault ends with `# ` and the code of the rule that has to find it.
"""

import jax
import jax.numpy as jnp

EPS = 1e-300
SMALL = 1e-8


def normalized(q):
    """https://github.com/kornia/kornia/issues/3966

    Example inputs:
        q: f16[8, 4]
    """
    return q / jnp.maximum(jnp.linalg.norm(q, axis=-1, keepdims=True), 1e-12)  # JX304


def normalized_by_default(x, eps=1e-8):
    """https://github.com/pytorch/pytorch/issues/32137

    Example inputs:
        x: f16[8, 4]
    """
    return x / (jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True)) + eps)  # JX304


def attention(logits, mask):
    """https://github.com/google/flax/issues/982

    Example inputs:
        logits, mask: f16[8, 8]
    """
    return jax.nn.softmax(logits + (1 - mask) * -1e9, axis=-1)  # JX304


def guarded_norm(s):
    """Seen in a library of physics.

    Example inputs:
        s: f32[3]
    """
    return jnp.sqrt(s @ s + 1e-300)  # JX304


def log_of_what_may_be_zero(p):
    """A constant of the module.

    Example inputs:
        p: f32[100]
    """
    return jnp.log(p + EPS)  # JX304


def clipped(p):
    """A lower bound that is none.

    Example inputs:
        p: f32[100]
    """
    return jnp.log(jnp.clip(p, 1e-320, 1.0))  # JX304


def adam(g, m, v):
    """A local name.

    Example inputs:
        g, m, v: f16[100]
    """
    epsilon = 1e-8
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return m / (jnp.sqrt(v) + epsilon)  # JX304
