"""jax-ml/jax#23936: `visualize_array_sharding` fails inside of `shard_map`.

The report's function. It asks for the layout of a value that JAX cannot print there.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("a",), axis_types=(AxisType.Auto,))


@jax.jit
def f():
    """
    Example inputs: where N=1000
    """

    def on_device():
        return jnp.zeros(1000)  # here: 1000 elements on each device, 4000 in all

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P("a"), check_vma=False)()
