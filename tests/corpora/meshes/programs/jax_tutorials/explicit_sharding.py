"""JAX's tutorial on explicit sharding (docs/notebooks/explicit-sharding), restated."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit, AxisType.Explicit))
jax.set_mesh(mesh)


@jax.jit
def add_arrays(x, y):
    """Shardings are part of types."""
    x, y = jax.reshard(x, P("X", None)), jax.reshard(y, P(None, "Y"))
    return jax.reshard(x, P("X", "Y")) + jax.reshard(y, P("X", "Y"))


@jax.jit
def contract(x, y):
    """A contraction over a divided axis needs to be told its result's sharding."""
    x, y = jax.reshard(x, P("X", "Y")), jax.reshard(y, P("Y", None))
    return jnp.einsum("ij,jk->ik", x, y, out_sharding=P("X", None))


@jax.jit
def scatter_contraction(x, y):
    """The same, with a result that is divided over that axis."""
    x, y = jax.reshard(x, P("X", "Y")), jax.reshard(y, P("Y", None))
    return jnp.einsum("ij,jk->ik", x, y, out_sharding=P("X", "Y"))


@jax.jit
def transpose_by_reshard(x):
    """Move a division from one axis to another."""
    return jax.reshard(jax.reshard(x, P("Y", None)).T, P("Y", None)).sum(1)


@jax.jit
def gather_rows(table, indices):
    """Look rows up in a divided table."""
    table = jax.reshard(table, P(None, "Y"))
    return table.at[jax.reshard(indices, P("X"))].get(out_sharding=P("X", "Y"))


@jax.jit
def mlp_gradient(w1, w2, x):
    """A gradient with explicit shardings."""
    w1, w2 = jax.reshard(w1, P(None, "Y")), jax.reshard(w2, P("Y", None))
    x = jax.reshard(x, P("X", None))

    def loss(weights):
        hidden = jax.nn.relu(jnp.einsum("bd,df->bf", x, weights[0]))
        return jnp.mean(jnp.einsum("bf,fd->bd", hidden, weights[1], out_sharding=P("X", None)) ** 2)

    return jax.grad(loss)((w1, w2))
