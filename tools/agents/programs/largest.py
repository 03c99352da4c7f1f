import jax.numpy as jnp


def best(scores):
    """Return the largest four scores of each row.

    Example inputs:
        scores: f32[1024, 4096]
    """
    return jnp.sort(scores, axis=-1)[:, -4:]
