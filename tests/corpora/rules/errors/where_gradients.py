"""Selections whose hidden case makes the gradient NaN, drawn from threads.

A line with a fault ends with `# ` and the code of the rule that has to find it.
"""

import jax.numpy as jnp

MASK = 1 - jnp.eye(5)


def root_above_one(x):
    """https://github.com/jax-ml/jax/issues/5798

    Example inputs:
        x: f32[]
    """
    return jnp.where(x < 1.0, x, jnp.sqrt(x))  # JX405


def long_vectors_alone(x):
    """https://github.com/jax-ml/jax/issues/347

    Example inputs:
        x: f32[3, 2]
    """
    norms = jnp.sqrt(jnp.sum(x**2, axis=1))
    norms = jnp.where(norms > 0.5, norms, jnp.ones_like(norms))  # JX405
    return jnp.sum(norms)


def angle_of_what_is_not_zero(a):
    """https://github.com/jax-ml/jax/issues/1052

    Example inputs:
        a: f32[3]
    """
    angle = jnp.arctan2(a, a)
    return jnp.sum(jnp.where(a == 0.0, 0.0, angle))  # JX405


def power_of_positive_parts(x):
    """https://github.com/jax-ml/jax/issues/19089

    Example inputs:
        x: f32[2]
    """
    delta = jnp.array((0.0, 1.0)) * x
    return jnp.sum(jnp.where(delta > 0, delta**0.5, 0))  # JX405


def exponential_after_its_start(t, start, log_tau):
    """https://github.com/nanograv/discovery/pull/91

    Example inputs:
        t: f32[100]
        start, log_tau: f32[]
    """
    dt = t - start
    return jnp.where(dt > 0, jnp.exp(-dt / 10**log_tau), 0.0)  # JX405


def root_of_the_negative(x):
    """https://github.com/HIPS/autograd/issues/802

    Example inputs:
        x: f32[]
    """
    return jnp.where(x >= 0, x, jnp.sqrt(-x))  # JX405


def exponential_linear_unit(x):
    """https://github.com/jax-ml/jax/issues/1052#issuecomment-514083352

    Example inputs:
        x: f32[100]
    """
    return jnp.where(x > 0, x, jnp.exp(x) - 1)  # JX405


def lens_of_two_disks(d, r, s):
    """https://lv416e.github.io/brepax/explanation/jax_where_gradient_pitfall/

    Example inputs:
        d, r, s: f32[]
    """
    cosine = (d**2 + r**2 - s**2) / (2 * d * r)
    angle = jnp.arccos(cosine)
    lens = r**2 * (angle - jnp.sin(2 * angle) / 2)
    contained = jnp.pi * jnp.minimum(r, s) ** 2
    return jnp.where(d >= r + s, 0.0, jnp.where(d <= jnp.abs(r - s), contained, lens))  # JX405


def entropy_of_a_masked_softmax(logits, keep):
    """https://github.com/jax-ml/jax/issues/17070

    Example inputs:
        logits: f32[8]
        keep: bool[8]
    """
    p = jnp.where(keep, jnp.exp(logits - jnp.max(logits)), 0.0)
    p = p / jnp.sum(p)
    return jnp.sum(jnp.where(p > 0, -p * jnp.log2(p), 0.0))  # JX417


def bessel_in_the_far(arg, b):
    """Seen in a library of physics: the operand is cut off, at the value where the root is steep.

    Example inputs:
        arg: f32[100]
        b: f32[]
    """
    return jnp.where(arg >= 0, jnp.exp(b * (jnp.sqrt(jnp.maximum(arg, 0)) - 1)), 0)  # JX405


def soft_threshold(d, v):
    """Seen in a library of optimization.

    Example inputs:
        d: f32[30, 3]
        v: f32[]
    """
    mag = jnp.linalg.norm(d, axis=-1, keepdims=True)
    return jnp.where(mag < v, 0, d * jnp.maximum(1 - (v / mag) ** 2, 0))  # JX405


def arc(x, a):
    """Seen in a library of splines.

    Example inputs:
        x: f32[30]
        a: f32[]
    """
    return jnp.where(x > a, 0.0, jnp.where(x < -a, jnp.pi, jnp.arccos(x / a)))  # JX405


def far_from_the_guard(x):
    """A logarithm and a power, six equations before the selection.

    Example inputs:
        x: f32[30]
    """
    y = jnp.log(x)
    z = 3.0 * y + 1.0
    z = z * z - 0.5 * z
    z = jnp.tanh(z) + 0.1 * jnp.sin(z)
    return jnp.where(x > 0, z * 2.0, 0.0)  # JX405
