import jax.numpy as jnp


def phases(x):
    """Return points, moved along a grid.

    Example inputs:
        x: f32[131072, 2]
    """
    n = len(x)
    grid = jnp.stack((jnp.arange(n), jnp.arange(n)), axis=-1)
    return x * 2 + jnp.sum(grid * x, axis=1, keepdims=True)
