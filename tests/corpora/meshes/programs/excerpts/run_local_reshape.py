"""Call `jax_privacy_sharding.py`, which needs explicit shardings."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from jax_privacy_sharding import local_reshape_add

jax.set_mesh(jax.make_mesh((4, 2), ("data", "mdl"), axis_types=(AxisType.Explicit,) * 2))


def add_noise(x, noise):
    """Add noise, of which each device has a part, to an array with another sharding."""
    x = jax.reshard(x, P("mdl", "data"))
    return local_reshape_add(x, jax.reshard(noise, P(("data", "mdl"))))
