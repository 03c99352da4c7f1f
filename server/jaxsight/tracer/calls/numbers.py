"""Numbers for example inputs that are given by their types alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.jaxprs.arguments import drawn_array


def with_numbers(arguments: Any) -> Any:
    """Return arguments with random numbers in place of abstract arrays."""
    generator = np.random.default_rng(0)
    drawn = 0

    def concrete(leaf: object) -> object:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        value = random(leaf)
        return value if leaf.sharding is None else jax.device_put(value, leaf.sharding)

    def random(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        nonlocal drawn
        if avals.is_subtype(leaf.dtype, np.floating):
            drawn += 1
            return jax.random.normal(jax.random.key(drawn % 3), leaf.shape, leaf.dtype)
        return drawn_array(avals.of(leaf), generator)

    return jax.tree.map(concrete, arguments)
