import jax
import jax.numpy as jnp


def clipped(grads):
    """Return clipped gradients.

    Example inputs:
        grads: (f32[8], f32[3])
    """
    return jax.tree_map(lambda g: jnp.clip(g, a_min=-1.0, a_max=1.0), grads)
