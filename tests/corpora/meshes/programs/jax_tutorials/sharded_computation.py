"""JAX's introduction to parallel programming (docs/sharded-computation), restated, and pmap.

Also the layer of the introduction to distributed training with pmap
(examples/spmd_mnist_classifier_fromscratch.py).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
sharding = NamedSharding(mesh, P("x"))


@partial(jax.jit, in_shardings=sharding)
def f_contract(x):
    """Reduce over the divided axis."""
    return x.sum(axis=0)


@jax.jit
def f_elementwise(x):
    """No communication."""
    x = jax.lax.with_sharding_constraint(x, sharding)
    return 2 * jnp.sin(x) + 1


@jax.jit
def layer(x, weights, bias):
    """A layer with a batch that is divided, and replicated weights."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", None)))
    return jax.nn.sigmoid(x @ weights + bias)


@partial(jax.jit, out_shardings=NamedSharding(mesh, P()))
def gathered(x):
    """Ask for a replicated result of a divided input."""
    return jax.lax.with_sharding_constraint(x, sharding) * 2


@partial(jax.pmap, axis_name="batch")
def spmd_update(params, inputs, targets):
    """Data parallelism by hand."""

    def loss(params):
        for W, b in params:
            activations = jnp.tanh(inputs @ W + b) if W.shape[1] > 10 else inputs @ W[: inputs.shape[1]] + b
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(activations) * targets, axis=1))

    grads = jax.grad(loss)(params)
    grads = [(jax.lax.psum(dw, "batch"), jax.lax.psum(db, "batch")) for dw, db in grads]
    return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, grads, strict=True)]
