"""Handlers around numbers of Python and around arrays of NumPy.

https://github.com/jax-ml/jax/issues/30
"""

import jax
import jax.numpy as jnp
import numpy as np


def mean(losses):
    try:
        return sum(losses) / len(losses)
    except ZeroDivisionError:
        return 0.0


def ratio(a, b):
    try:
        return float(a) / float(b)
    except ZeroDivisionError:
        return float("inf")


def on_host(x, y):
    with np.errstate(divide="ignore"):
        return np.where(y == 0, 0, x / y)


@jax.jit
def checked(x, n):
    try:
        k = 3 // x.shape[0]
    except ZeroDivisionError:
        k = 0
    return x * k


def debugged(x):
    jax.config.update("jax_debug_nans", True)
    try:
        return jnp.log(x)
    except FloatingPointError:
        return x


def solved(a):
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return None
