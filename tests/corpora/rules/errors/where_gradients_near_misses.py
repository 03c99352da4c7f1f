"""Selections whose gradient is fine, which resemble those of `where_gradients.py`."""

import jax
import jax.numpy as jnp


def root_above_one(x):
    """https://github.com/jax-ml/jax/issues/5798, as the answer mends it.

    Example inputs:
        x: f32[]
    """
    condition = x < 1
    valid = jnp.where(condition, 1, x)
    return jnp.where(condition, x, jnp.sqrt(valid))


def long_vectors_alone(x):
    """https://github.com/jax-ml/jax/issues/347, as the author mends it.

    Example inputs:
        x: f32[3, 2]
    """
    squares = jnp.sum(x**2, axis=1)
    return jnp.sum(jnp.sqrt(jnp.where(squares > 0.5, squares, jnp.ones_like(squares))))


def root_below_zero(x):
    """https://github.com/HIPS/autograd/issues/802: a logarithm of what is negative has a slope.

    Example inputs:
        x: f32[]
    """
    return jnp.where(x > 0, x, jnp.log(-x))


def exponential_linear_unit(x):
    """As `jax.nn.elu` is written.

    Example inputs:
        x: f32[100]
    """
    return jnp.where(x > 0, x, jnp.expm1(jnp.where(x > 0, 0.0, x)))


def exponential_after_its_start(t, start, tau):
    """https://github.com/nanograv/discovery/pull/91: what overflows is cut off before.

    Example inputs:
        t: f32[100]
        start: f32[]
        tau: f32[]
    """
    dt = t - start
    return jnp.where(dt > 0, jnp.exp(-jnp.maximum(dt, 0.0) / (1.0 + tau**2)), 0.0)


def sign_of_a_root(s, b):
    """The root is used in both cases: the selection hides nothing.

    Example inputs:
        s: f32[3]
        b: f32[]
    """
    a = jnp.sqrt(s @ s)
    return jnp.where(b < a, -a, a)


def leaky(x, w):
    """What is selected by is made of an unsafe quotient, which both cases read.

    Example inputs:
        x: f32[100]
        w: f32[100]
    """
    y = x / jnp.linalg.norm(w)
    return jnp.where(y > 0, y, 0.01 * y)


def huber(x):
    """Both cases have finite slopes everywhere.

    Example inputs:
        x: f32[100]
    """
    return jnp.where(jnp.abs(x) < 1.0, 0.5 * x**2, jnp.abs(x) - 0.5)


def loss_by_label(p, label):
    """Labels say nothing about probabilities.

    Example inputs:
        p: f32[100]
        label: i32[100]
    """
    return jnp.where(label == 1, jnp.log(p), jnp.log1p(-p))


def probability_of_a_softmax(logits):
    """What is added under the logarithm keeps it finite where it is hidden.

    Example inputs:
        logits: f32[100]
    """
    p = jax.nn.softmax(logits)
    return jnp.sum(jnp.where(p > 1e-6, p * jnp.log(p + 1e-12), 0.0))


def clipped(x):
    """The operand is clipped inside of the bounds.

    Example inputs:
        x: f32[100]
    """
    inside = jnp.clip(x, -1 + 1e-6, 1 - 1e-6)
    return jnp.where(jnp.abs(x) < 1, jnp.arccos(inside), 0.0)


def average_of_what_counts(x, count):
    """https://github.com/jax-ml/jax/issues/1052: integers have no derivative.

    Example inputs:
        x: f32[100]
        count: i32[100]
    """
    return jnp.where(count > 0, x / jnp.maximum(count, 1), 0.0)


def smooth_step(x, low, high):
    """A quotient of differences, whose operand is clipped.

    Example inputs:
        x: f32[100]
        low, high: f32[]
    """
    u = jnp.clip((x - low) / (jnp.abs(high - low) + 1e-3), 0.0, 1.0)
    return jnp.where(u > 0.5, u * u * (3 - 2 * u), 0.5 * u)


def inside_of_a_sphere(r):
    """Nothing is hidden where the quotient is infinite.

    Example inputs:
        r: f32[100]
    """
    return jnp.where(r < 8.0, 1 / r, 0.0)


def positive_by_softplus(x):
    """The operand of the root is positive everywhere.

    Example inputs:
        x: f32[100]
    """
    scale = jax.nn.softplus(x) + 1e-3
    return jnp.where(x > 0, jnp.sqrt(scale), scale)


def drag_of_a_low_orbit(motion, eccentricity):
    """The condition compares a flag; what that is chosen by is infinite for a motion of 0.

    Example inputs:
        motion, eccentricity: f32[100]
    """
    height = (0.074 / motion) ** (2 / 3)
    is_simple = jnp.where(height * (1 - eccentricity) < 1.035, 1.0, 0.0)
    is_simple = jnp.where(6.283 / motion >= 225.0, 1.0, is_simple)
    return jnp.where(is_simple < 0.5, 4 * height * eccentricity, 0.0)


def mean_of_a_decay(rate, time):
    """The condition is there for a time of 0; far before it, `expm1` overflows in either case.

    Example inputs:
        rate, time: f32[100]
    """
    z = jnp.maximum(rate, 0.0) * time
    mean = -jnp.expm1(-z) / jnp.where(z == 0.0, 1.0, z)
    return jnp.where(z > 1e-8, mean, 1.0 - 0.5 * z)
