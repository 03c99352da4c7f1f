import jax
import jax.numpy as jnp


def layer(x, w):
    """Return a layer, whose weights are divided over devices.

    Example inputs:
        mesh: data=8
        x: f32[1024@data, 512]
        w: f32[512, 512@data]
    """
    y = jnp.tanh(x @ w)
    return jax.lax.with_sharding_constraint(y, jax.P("data", None))
