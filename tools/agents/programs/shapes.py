import jax.numpy as jnp


def patches(images):
    """Return the patches of images.

    Example inputs:
        images: f32[B, 32, 32, 3]
        where B=8
    """
    b, h, w, c = images.shape
    grid = images.reshape(b, h // 4, 4, w // 4, 4, c)
    return jnp.einsum("bhpwqc->bhwpqc", grid).reshape(b, (h // 4) * (w // 4), -1)
