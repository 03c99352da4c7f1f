"""Examples of Equinox and Optax on several devices, restated.

Equinox: docs/examples/parallelism; Optax: `optax/_src/sharding_test.py`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
grid = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
SHARDED = jax.sharding.NamedSharding(mesh, P("batch"))
REPLICATED = jax.sharding.NamedSharding(mesh, P())
COLUMNS = jax.sharding.NamedSharding(grid, P(None, "model"))
optimizer = optax.adamw(1e-3)
model = eqx.nn.MLP(8, 1, 64, 2, key=jax.random.key(0))


@eqx.filter_jit
def equinox_step(model, x, y):
    """Data parallelism, as Equinox's example of autoparallelism."""
    model = eqx.filter_shard(model, REPLICATED)
    x, y = eqx.filter_shard((x, y), SHARDED)

    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    gradient = eqx.filter_grad(loss)(model)
    return eqx.filter_shard(eqx.apply_updates(model, gradient), REPLICATED)


@jax.jit
def optax_step(w, x):
    """A step of AdamW, whose state is divided as the parameters are."""
    w = jax.lax.with_sharding_constraint(w, COLUMNS)
    x = jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(grid, P("data", None)))
    gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    updates, _ = optimizer.update(gradient, optimizer.init(w), w)
    return jax.lax.with_sharding_constraint(optax.apply_updates(w, updates), COLUMNS)


@jax.jit
def clipped_gradient(w, x):
    """Clip by the global norm, which needs a sum over all devices."""
    w = jax.lax.with_sharding_constraint(w, COLUMNS)
    x = jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(grid, P("data", None)))
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    clip = optax.clip_by_global_norm(1.0)
    return clip.update({"w": gradient}, clip.init({"w": w}))[0]
