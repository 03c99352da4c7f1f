"""Constants that the dtype of the program has, or whose loss is meant."""

import jax
import jax.numpy as jnp

EPS = 1e-30


def normalized(q):
    """https://github.com/kornia/kornia/issues/3966, in float32.

    Example inputs:
        q: f32[8, 4]
    """
    return q / jnp.maximum(jnp.linalg.norm(q, axis=-1, keepdims=True), 1e-12)


def normalized_in_half(q):
    """With a number that float16 has.

    Example inputs:
        q: f16[8, 4]
    """
    return q / jnp.maximum(jnp.linalg.norm(q, axis=-1, keepdims=True), 1e-4)


def attention(logits, mask):
    """https://github.com/google/flax/pull/1527

    Example inputs:
        logits, mask: f16[8, 8]
    """
    return jax.nn.softmax(logits + (1 - mask) * jnp.finfo(jnp.float16).min, axis=-1)


def selected(logits, mask):
    """What is selected as -inf is meant as such.

    Example inputs:
        logits: f16[8, 8]
        mask: bool[8, 8]
    """
    return jax.nn.softmax(jnp.where(mask, logits, -1e9), axis=-1)


def guarded_norm(s):
    """float32 has numbers down to 1e-38.

    Example inputs:
        s: f32[3]
    """
    return jnp.sqrt(s @ s + EPS)


def brain(x):
    """bfloat16 has the exponents of float32.

    Example inputs:
        x: bf16[8, 4]
    """
    return x / (jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True)) + 1e-8)


def zero(x):
    """Zero is written.

    Example inputs:
        x: f32[8]
    """
    return jnp.maximum(x, 0.0) + 0


def unit(energy):
    """The constant is multiplied by another first, in Python.

    Example inputs:
        energy: f32[8]
    """
    return energy * (1e-300 * 1e300)
