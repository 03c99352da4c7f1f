import jax
import jax.numpy as jnp


def block(x, w1, w2, scale):
    h = jax.nn.gelu(x @ w1)
    h = h * jax.lax.rsqrt(jnp.mean(h**2, axis=-1, keepdims=True) + 1e-6) * scale
    return x + h @ w2


def model(x, w1, w2, scale):
    """Return two blocks and their pooled sum.

    Example inputs:
        x: f32[2, 3, 4]
        w1: f32[4, 8]
        w2: f32[8, 4]
        scale: f32[8]
    """
    x = block(x, w1, w2, scale)
    x = block(x, w1, w2, scale)
    pooled = jnp.mean(x, axis=1)
    return x + pooled
