"""Random values for arguments that are given by their types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Aval, DType

_bounds: Callable[[DType], jnp.iinfo] = jnp.iinfo

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Returns random numbers of a shape."""

SMALL = (0, 8)
"""The integers that are drawn if nothing is known of their use, a choice: from, and below."""


def normal_numbers(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw from the standard normal distribution."""
    return generator.normal(size=shape)


def drawn_array(
    aval: Aval,
    generator: np.random.Generator,
    *,
    numbers: Draw = normal_numbers,
    integers: tuple[int, int] = SMALL,
) -> jax.Array:
    """Return a random array of an abstract value's type.

    Args:
        aval: the type: numbers, booleans, or typed PRNG keys.
        generator: where they are drawn from.
        numbers: draws numbers that are not integers, and parts of complex ones.
        integers: the lowest integer, and the one above the highest.
    """
    dtype, shape = aval.dtype, aval.shape
    if avals.is_key(aval):
        key = jax.random.key(int(generator.integers(0, 1 << 31)), impl=avals.key_impl(dtype))
        return jax.random.split(key, math.prod(shape)).reshape(shape)
    if dtype == jnp.bool_:
        return jnp.asarray(generator.integers(0, 2, size=shape) == 1)
    if avals.is_subtype(dtype, np.integer):
        low, high = integers
        bounds = _bounds(dtype)
        least, most = int(bounds.min), int(bounds.max)
        low, high = max(low, least), min(high, most + 1)
        return jnp.asarray(generator.integers(low, max(high, low + 1), size=shape), dtype)
    values = numbers(generator, shape)
    if avals.is_subtype(dtype, np.complexfloating):
        parts = np.empty(shape, np.complex128)
        parts.real, parts.imag = values, numbers(generator, shape)
        return jnp.asarray(parts, dtype)
    return jnp.asarray(values, dtype)


def with_numbers(arguments: Any) -> Any:
    """Return arguments with random numbers in place of abstract arrays."""
    generator = np.random.default_rng(0)
    drawn = 0

    def concrete(leaf: object) -> object:
        nonlocal drawn
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if avals.is_subtype(leaf.dtype, np.floating):
            drawn += 1
            value = jax.random.normal(jax.random.key(drawn % 3), leaf.shape, leaf.dtype)
        else:
            value = drawn_array(avals.of(leaf), generator)
        return value if leaf.sharding is None else jax.device_put(value, leaf.sharding)

    return jax.tree.map(concrete, arguments)
