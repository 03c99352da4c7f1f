import jax.numpy as jnp


def weights(a, b):
    """Return the solution of a linear system.

    Example inputs:
        a: f32[512, 512]
        b: f32[512, 8]
    """
    return jnp.linalg.inv(a) @ b
