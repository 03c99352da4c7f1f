"""Permute axes as `einops.rearrange`, which is not installed here, does."""

import jax.numpy as jnp


def rearrange(x, pattern):
    """Permute the axes of `x`, as `b h q -> b q h` says."""
    before, after = (side.split() for side in pattern.split("->"))
    return jnp.transpose(x, [before.index(name) for name in after])
