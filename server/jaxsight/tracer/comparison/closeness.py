"""Compare arrays up to rounding errors."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat.jaxpr_types import DType

TOLERANCE = {8: 1e-11, 4: 1e-5, 2: 1e-2, 1: 2e-1}
"""Relative tolerances by bytes of a floating-point number, for a different order of operations:
for float32 ten times that of JAX's tests (`_default_tolerance` in jax/_src/public_test_util.py)."""


class Incomparable(Exception):
    """Two programs differ, or cannot be compared; the message has the reason."""


def agree(
    name: str,
    expected: jax.Array | np.ndarray,
    actual: jax.Array | np.ndarray,
    below: float,
    slack: float = 1.0,
) -> bool:
    """Return whether two arrays are bitwise equal.

    Args:
        name: the arrays' name in an error.
        expected: any dtype and shape; PRNG keys are compared by their data.
        actual: the same dtype.
        below: the fraction of the root mean square that is added to each number's magnitude.
        slack: a factor of the tolerance.

    Raises:
        Incomparable: they are not even equal up to rounding.
    """
    expected, actual = plain(expected), plain(actual)
    if expected.shape != actual.shape:
        raise Incomparable(f"{name} has a different shape")
    if expected.tobytes() == actual.tobytes():
        return True
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        raise Incomparable(f"{name} differs: {first(expected, actual, expected != actual)}")
    a, b = wide(expected), wide(actual)
    scale = root_mean_square(a)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= slack * tolerance(expected.dtype) * (
            np.maximum(np.abs(a), np.abs(b)) + below * scale
        )
    near |= (a == b) | (np.isnan(a) & np.isnan(b))
    if not near.all():
        raise Incomparable(f"{name} differs: {first(a, b, ~near)}")
    return False


def tolerance(dtype: DType) -> float:
    """Return the relative tolerance of an inexact dtype; of the parts for complex numbers."""
    kind = np.dtype(dtype)
    return TOLERANCE[kind.itemsize // (2 if kind.kind == "c" else 1)]


def plain(value: jax.Array | np.ndarray) -> np.ndarray:
    """Return an array as a NumPy array, PRNG keys as their data."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def wide(value: jax.Array | np.ndarray) -> np.ndarray:
    """Return numbers as float64 or complex128."""
    return np.asarray(value).astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def root_mean_square(numbers: np.ndarray) -> float:
    """Return the root mean square of the finite numbers of a wide array, 0 if there are none."""
    finite = numbers[np.isfinite(numbers)]
    return math.sqrt(float(np.mean(np.abs(finite) ** 2))) if finite.size else 0.0


def first(expected: np.ndarray, actual: np.ndarray, where: np.ndarray) -> str:
    """Return a message with the first pair of numbers selected by a mask."""
    index = tuple(int(i) for i in np.argwhere(where)[0])
    at = f" at {list(index)}" if index else ""
    return f"{actual[index]} instead of {expected[index]}{at}"
