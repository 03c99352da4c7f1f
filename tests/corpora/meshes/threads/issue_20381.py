"""jax-ml/jax#20381: an all-gather in a shuffle of each row, though rows are independent.

The report's function, with other sizes. Nobody answered in the thread.
"""

import functools

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("dp"))
everywhere = NamedSharding(mesh, P())


@functools.partial(jax.jit, in_shardings=(everywhere, rows), out_shardings=rows)
def f(key, inputs):
    """
    Example inputs:
        key: key<fry>[]
        inputs: f32[24, 128, 16]
    """
    keys = jax.random.split(key, inputs.shape[0])
    return jax.vmap(jax.random.permutation)(keys, inputs)  # here
