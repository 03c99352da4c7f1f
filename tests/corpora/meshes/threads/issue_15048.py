"""openxla/xla#15048: strange collectives around the scatter of a pipeline's results.

The report has only HLO, of a model of AXLearn. This is that part of a pipeline, reduced: each stage
writes its result into its own slot, stages are divided over `pipe`.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 2, 2), ("pipe", "data", "model"), axis_types=(AxisType.Auto,) * 3)


def on(*axes):
    return NamedSharding(mesh, P(*axes))


@jax.jit
def f(kept, results, weights, step):
    """
    Example inputs:
        kept: bf16[4, 8, 16, 128]
        results: bf16[4, 16, 128]
        weights: bf16[4, 128, 128]
        step: i32[4]
    """
    kept = jax.lax.with_sharding_constraint(kept, on("pipe", None, "data", "model"))
    results = jax.lax.with_sharding_constraint(results, on("pipe", "data", "model"))
    weights = jax.lax.with_sharding_constraint(weights, on("pipe", None, "model"))

    def loss(weights):
        new = jnp.einsum("sbd,sdf->sbf", results, weights)
        written = jax.vmap(lambda slots, value, i: slots.at[i].set(value))(kept, new, step)
        return (written.reshape(32, 16, 128).astype("float32") ** 2).mean()

    return jax.grad(loss)(weights)
