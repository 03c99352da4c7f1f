"""A layer of a transformer on a mesh of eight devices, in each of JAX's three ways to shard.

Try `jaxsight show examples/sharded.py:explicit`. No device is needed.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def automatic(x, up, down):
    """Let the compiler choose shardings inside: the axes are automatic.

    Example inputs:
        mesh: data=2, model=4
        x: bf16[B@data, D]
        up: bf16[D, F@model]
        down: bf16[F@model, D]
        where B=32, D=512, F=4*D
    """
    return jax.nn.gelu(x @ up) @ down


def explicit(x, up, down):
    """Have shardings in types: the axes are explicit.

    Example inputs:
        mesh: data=2, model=4 explicit
        x: bf16[B@data, D]
        up: bf16[D, F@model]
        down: bf16[F@model, D]
        where B=32, D=512, F=4*D
    """
    hidden = jax.nn.gelu(x @ up)  # bf16[32@data,2048@model]
    return jnp.matmul(hidden, down, out_sharding=P("data"))


def manual(x, up, down):
    """Say what each device does: `jax.shard_map` makes the axes manual.

    Example inputs:
        mesh: data=2, model=4
        x: bf16[B@data, D]
        up: bf16[D, F@model]
        down: bf16[F@model, D]
        where B=32, D=512, F=4*D
    """

    def layer(x, up, down):
        return jax.lax.psum(jax.nn.gelu(x @ up) @ down, "model")

    specs = P("data"), P(None, "model"), P("model")
    return jax.shard_map(layer, in_specs=specs, out_specs=P("data"))(x, up, down)
