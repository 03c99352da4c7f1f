"""Call `jaxdecomp_pencils.py`: an array in pencils, over both axes of a mesh."""

from functools import partial

import jax
from jax.sharding import PartitionSpec as P
from jaxdecomp_pencils import _halo_pencils, per_shard_impl

mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
SPEC = P("x", "y", None)
on_pencils = partial(jax.shard_map, mesh=mesh, in_specs=SPEC, check_vma=False)


def exchange_halo(array):
    """Exchange the edges of pencils with the neighbours in both directions."""
    exchange = partial(
        _halo_pencils,
        halo_extents=(2, 2),
        halo_periods=(True, True),
        x_axis_name="x",
        y_axis_name="y",
    )
    return on_pencils(exchange, out_specs=SPEC)(array)


def turn_pencils(array):
    """Transpose twice, from pencils along z to pencils along y, then x."""
    turn = partial(per_shard_impl, x_axis_name="x", y_axis_name="y")
    array = on_pencils(partial(turn, kind="x_y"), out_specs=P("x", "y", None))(array)
    return on_pencils(partial(turn, kind="y_z"), out_specs=P("y", "x", None))(array)
