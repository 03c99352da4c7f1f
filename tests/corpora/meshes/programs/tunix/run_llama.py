"""Train Llama 3 of `models/llama3/model.py`, with its parameters divided as it says."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import nnx

sys.path.insert(0, str(Path(__file__).parents[1]))
from tunix.models.llama3.model import Llama3, ModelConfig  # noqa: E402

mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
CONFIG = ModelConfig(
    num_layers=2,
    vocab_size=512,
    embed_dim=128,
    hidden_dim=512,
    num_heads=8,
    head_dim=16,
    num_kv_heads=4,
    norm_eps=1e-5,
    rope_theta=500_000,
)
graph, abstract = nnx.split(nnx.eval_shape(lambda: Llama3(CONFIG, rngs=nnx.Rngs(0))))
SHARDINGS = jax.tree.map(
    lambda spec: jax.sharding.NamedSharding(mesh, spec), nnx.get_partition_spec(abstract)
)
TOKENS = jax.sharding.NamedSharding(mesh, jax.P("fsdp"))


def loss(state, tokens):
    """Return the mean negative log-likelihood of the next tokens."""
    model = nnx.merge(graph, state)
    positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
    mask = jnp.tril(jnp.ones((tokens.shape[1],) * 2, bool))[None]
    logits, _ = model(tokens, positions, None, jnp.broadcast_to(mask, (tokens.shape[0], *mask.shape[1:])))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1)
    return -chosen.mean()


def step(state, tokens):
    """Take a step of gradient descent."""
    state = jax.lax.with_sharding_constraint(state, SHARDINGS)
    tokens = jax.lax.with_sharding_constraint(tokens, TOKENS)
    gradients = jax.grad(loss)(state, tokens)
    updated = jax.tree.map(lambda p, g: p - 0.1 * g, state, gradients)
    return jax.lax.with_sharding_constraint(updated, SHARDINGS)


def forward(state, tokens):
    """Return the loss, with parameters and tokens divided over both axes."""
    state = jax.lax.with_sharding_constraint(state, SHARDINGS)
    return loss(state, jax.lax.with_sharding_constraint(tokens, TOKENS))
