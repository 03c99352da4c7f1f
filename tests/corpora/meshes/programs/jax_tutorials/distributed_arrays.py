"""JAX's tutorial on distributed arrays and automatic parallelization, restated.

docs/notebooks/Distributed_arrays_and_automatic_parallelization
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.experimental import mesh_utils

mesh = Mesh(mesh_utils.create_device_mesh((8,)), axis_names=("batch",))
grid = Mesh(mesh_utils.create_device_mesh((4, 2)), axis_names=("batch", "model"))


def on(mesh, *axes):
    """Return a sharding."""
    return NamedSharding(mesh, P(*axes))


LAYERS = 6
BATCH = (on(mesh, "batch"), on(mesh, "batch"))
PARAMS = [(on(grid, None, "model"), on(grid, "model")), (on(grid, "model", None), on(grid))] * 3


@jax.jit
def matmul_blocks(x, y):
    """Rows of one times columns of the other: no communication."""
    x = jax.lax.with_sharding_constraint(x, on(grid, "batch", None))
    y = jax.lax.with_sharding_constraint(y, on(grid, None, "model"))
    return x @ y


@jax.jit
def matmul_same_layout(x, y):
    """Both in blocks: an operand has to be gathered."""
    x = jax.lax.with_sharding_constraint(x, on(grid, "batch", "model"))
    y = jax.lax.with_sharding_constraint(y, on(grid, "batch", "model"))
    return jax.lax.with_sharding_constraint(x @ y, on(grid, "batch", "model"))


def constrained(x):
    """Override the layout in the middle."""
    x = x + 1
    y = jax.lax.with_sharding_constraint(x, on(grid, "model", "batch"))
    return jnp.sin(y)


reshard = jax.jit(constrained, in_shardings=on(grid, "batch", "model"))


@jax.jit
def change_layout(x):
    """Call a function that is compiled with its own layouts."""
    return reshard(jax.lax.with_sharding_constraint(x, on(grid, "batch", "model")))


def predict(params, inputs):
    """Apply the layers."""
    for W, b in params:
        outputs = jnp.dot(inputs, W) + b
        inputs = jnp.maximum(outputs, 0)
    return outputs


def loss(params, batch):
    """Return the mean square error."""
    inputs, targets = batch
    return jnp.mean(jnp.sum((predict(params, inputs) - targets) ** 2, axis=-1))


@jax.jit
def gradfun_data(params, batch):
    """8-way data parallelism."""
    batch = jax.lax.with_sharding_constraint(batch, BATCH)
    params = jax.lax.with_sharding_constraint(params, on(mesh))
    return jax.grad(loss)(params, batch)


@jax.jit
def gradfun_tensor(params, batch):
    """4-way batch data parallelism and 2-way model tensor parallelism."""
    batch = jax.lax.with_sharding_constraint(batch, on(grid, "batch", None))
    params = jax.lax.with_sharding_constraint(params, PARAMS)
    return jax.lax.with_sharding_constraint(jax.grad(loss)(params, batch), PARAMS)


@jax.jit
def random_numbers(key, x):
    """Random numbers in the layout of an array."""
    x = jax.lax.with_sharding_constraint(x, on(mesh, "batch"))
    return x + jax.random.uniform(key, x.shape)
