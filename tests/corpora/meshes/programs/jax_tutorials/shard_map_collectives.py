"""The collectives of JAX's tutorial on shard_map (docs/notebooks/shard_map), restated."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

AUTO = jax.sharding.AxisType.Auto
mesh1d = jax.make_mesh((4,), ("i",), axis_types=(AUTO,))
mesh2d = jax.make_mesh((2, 2), ("i", "j"), axis_types=(AUTO,) * 2)
on_line = partial(jax.shard_map, mesh=mesh1d, in_specs=P("i"))


@jax.jit
@partial(on_line, out_specs=P(None))
def sum_blocks(x_block):
    """psum."""
    return jax.lax.psum(x_block, "i")


@jax.jit
@partial(jax.shard_map, mesh=mesh2d, in_specs=P("i", "j"), out_specs=P(None, "j"))
def sum_over_one_axis(x_block):
    """psum over one of two axes."""
    return jax.lax.psum(x_block, "i")


@jax.jit
@partial(jax.shard_map, mesh=mesh2d, in_specs=P("i", "j"), out_specs=P(None, None))
def sum_over_both_axes(x_block):
    """psum over both axes."""
    return jax.lax.psum(x_block, ("i", "j"))


@jax.jit
@partial(on_line, out_specs=P("i"))
def gather_blocks(x_block):
    """all_gather."""
    return jax.lax.all_gather(x_block, "i", tiled=True)


@jax.jit
@partial(on_line, out_specs=P("i"))
def scatter_sums(x_block):
    """psum_scatter."""
    return jax.lax.psum_scatter(x_block, "i", tiled=True)


@jax.jit
@partial(on_line, out_specs=P("i"))
def permute_blocks(x_block):
    """ppermute."""
    size = jax.lax.axis_size("i")
    return jax.lax.ppermute(x_block, "i", [(i, (i + 1) % size) for i in range(size)])


@jax.jit
@partial(on_line, out_specs=P("i"))
def transpose_blocks(x_block):
    """all_to_all."""
    return jax.lax.all_to_all(x_block, "i", split_axis=0, concat_axis=0, tiled=True)


@jax.jit
@partial(on_line, out_specs=P("i"))
def psum_by_ppermute(x_block):
    """The sum over devices as a loop of permutations."""
    size = jax.lax.axis_size("i")

    def body(_, carry):
        total, moving = carry
        moving = jax.lax.ppermute(moving, "i", [(i, (i + 1) % size) for i in range(size)])
        return total + moving, moving

    return jax.lax.fori_loop(0, size - 1, body, (x_block, x_block))[0]


@jax.jit
def mean_of_squares(x):
    """A maximum, then a mean, of all devices."""

    def on_device(block):
        return jax.lax.pmean(jnp.mean((block / jax.lax.pmax(jnp.max(block), "i")) ** 2), "i")

    return jax.shard_map(on_device, mesh=mesh1d, in_specs=P("i"), out_specs=P())(x)
