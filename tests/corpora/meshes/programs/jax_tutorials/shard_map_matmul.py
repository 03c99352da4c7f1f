"""The matrix products of JAX's tutorial on shard_map (docs/notebooks/shard_map), restated."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

AUTO = jax.sharding.AxisType.Auto
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AUTO,) * 2)
line = jax.make_mesh((8,), ("i",), axis_types=(AUTO,))


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def matmul_basic(a_block, b_block):
    """Sum the partial products."""
    return jax.lax.psum(jnp.dot(a_block, b_block), "y")


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))
def matmul_reduce_scatter(a_block, b_block):
    """Sum the partial products, and keep a part."""
    partial_sum = jnp.matmul(a_block, b_block)
    return jax.lax.psum_scatter(partial_sum, "y", scatter_dimension=1, tiled=True)


@jax.jit
@partial(
    jax.shard_map, mesh=line, in_specs=(P("i", None), P(None, "i")), out_specs=P(None, "i"), check_vma=False
)
def matmul_allgather(lhs_block, rhs_block):
    """Gather the left operand."""
    return jax.lax.all_gather(lhs_block, "i", tiled=True) @ rhs_block


@jax.jit
@partial(jax.shard_map, mesh=line, in_specs=(P("i", None), P(None, "i")), out_specs=P(None, "i"))
def matmul_allgather_overlapped(lhs_block, rhs_block):
    """Pass the blocks of the left operand around a ring, and multiply meanwhile."""
    size = jax.lax.axis_size("i")
    idx = jax.lax.axis_index("i")
    shift = partial(jax.lax.ppermute, axis_name="i", perm=[(i, (i + 1) % size) for i in range(size)])
    rows = lhs_block.shape[0]
    out = jax.lax.pcast(
        jnp.zeros((rows * size, rhs_block.shape[1]), lhs_block.dtype), "i", to="varying"
    )
    for i in range(size):
        update = lhs_block @ rhs_block
        lhs_block = shift(lhs_block)
        out = jax.lax.dynamic_update_slice(out, update, (((idx - i) % size) * rows, 0))
    return out


@jax.jit
@partial(jax.shard_map, mesh=line, in_specs=(P(None, "i"), P("i", None)), out_specs=P("i", None))
def matmul_psumscatter_overlapped(lhs_block, rhs_block):
    """Pass the sums around a ring."""
    size = jax.lax.axis_size("i")
    idx = jax.lax.axis_index("i")
    shift = partial(jax.lax.ppermute, axis_name="i", perm=[(i, (i - 1) % size) for i in range(size)])
    blocks = lhs_block.reshape(size, lhs_block.shape[0] // size, lhs_block.shape[1])

    def block(i):
        return jax.lax.dynamic_index_in_dim(blocks, (idx + i + 1) % size, keepdims=False)

    total = block(0) @ rhs_block
    for i in range(1, size):
        total = shift(total)
        total += block(i) @ rhs_block
    return total
