"""Whether two arrays are the same number for number, as far as rounding goes."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

TOLERANCE = {8: 1e-11, 4: 1e-5, 2: 1e-2, 1: 2e-1}
"""Of the larger of two numbers, by the bytes of a floating-point number: what another order of
operations may change.
"""


class Incomparable(Exception):
    """Why two programs are not compared, or are not the same, for people."""


def agree(what: str, one: Any, other: Any, below: float, slack: float = 1.0) -> bool:
    """Return whether two arrays are equal to the bit.

    Args:
        what: the arrays' name in an error.
        one: any dtype and shape; PRNG keys are compared by their data.
        other: the same dtype.
        below: the share of the tolerance that is granted of the root mean square too.
        slack: how many times the tolerance is granted.

    Raises:
        Incomparable: they are not even equal within rounding.
    """
    one, other = plain(one), plain(other)
    if one.shape != other.shape:
        raise Incomparable(f"{what} has another shape")
    if one.tobytes() == other.tobytes():
        return True
    if not jnp.issubdtype(one.dtype, jnp.inexact):
        raise Incomparable(f"{what} is not the same: {first(one, other, one != other)}")
    a, b = wide(one), wide(other)
    scale = root_mean_square(a)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= slack * tolerance(one.dtype) * (
            np.maximum(np.abs(a), np.abs(b)) + below * scale
        )
    near |= (a == b) | (np.isnan(a) & np.isnan(b))
    if not near.all():
        raise Incomparable(f"{what} is not the same: {first(a, b, ~near)}")
    return False


def tolerance(dtype: Any) -> float:
    """Return the relative tolerance of an inexact dtype; that of the parts for complex numbers."""
    kind = np.dtype(dtype)
    return TOLERANCE[kind.itemsize // (2 if kind.kind == "c" else 1)]


def plain(value: Any) -> Any:
    """Return an array as NumPy's: PRNG keys as their data."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def wide(value: Any) -> Any:
    """Return numbers as float64 or complex128."""
    return np.asarray(value).astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def root_mean_square(numbers: Any) -> float:
    """Return that of the finite numbers among wide ones; 0 where there are none."""
    finite = numbers[np.isfinite(numbers)]
    return math.sqrt(float(np.mean(np.abs(finite) ** 2))) if finite.size else 0.0


def first(one: Any, other: Any, where: Any) -> str:
    """Return the first pair of numbers at a place of a mask, for people."""
    index = tuple(int(i) for i in np.argwhere(where)[0])
    at = f" at {list(index)}" if index else ""
    return f"{other[index]} instead of {one[index]}{at}"
