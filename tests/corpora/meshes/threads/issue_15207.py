"""openxla/xla#15207, jax-ml/jax#21562: a sum in one layout, wanted in another.

The report's function, with other sizes. XLA logs "Involuntary full rematerialization": it cannot go
from `P("y", None, "x")` to `P(None, ("x", "y"), None)` without replicating the sum.
"""

import functools

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
across = NamedSharding(mesh, P("y", None, "x"))
columns = NamedSharding(mesh, P(None, ("x", "y"), None))


@functools.partial(jax.jit, in_shardings=(across, across, columns), out_shardings=columns)
def f(a, b, c):
    """
    Example inputs:
        a, b, c: f32[32, 16, 32]
    """
    total = a + b  # here
    total = jax.lax.with_sharding_constraint(total, columns)
    return total + c
