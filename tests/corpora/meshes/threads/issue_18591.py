"""jax-ml/jax#18591: "the error tells me nothing about where in my code it's getting triggered".

The report has no program. This one has the shardings of its message, on 8 devices instead of 256:
from all devices along the rows to a fourth of them along the columns.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rows = NamedSharding(mesh, P(("data", "model"), None))
columns = NamedSharding(mesh, P(None, "data"))


@jax.jit
def f(x):
    """
    Example inputs:
        x: f32[64, 64]
    """
    x = jax.lax.with_sharding_constraint(x, rows)  # here
    x = jnp.sin(x)  # or here
    x = jax.lax.with_sharding_constraint(x, columns)
    return jnp.cos(x)
