"""Call the functions of this folder, which run inside of `shard_map` or need a mesh."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.sharding import PartitionSpec as P
from maxtext_moe import _moe_combine_psum_scatter, calculate_load_balance_updates
from tax_fsdp import shard_module_params
from tpu_inference_cp import _dcp_a2a_reduce, merge_attn_states

AUTO = jax.sharding.AxisType.Auto
experts = jax.make_mesh((8,), ("expert",), axis_types=(AUTO,))
decode = jax.make_mesh((2, 4), ("model", "dcp"), axis_types=(AUTO, AUTO))
data = jax.make_mesh((8,), ("B",), axis_types=(AUTO,))


def combine_experts(x, w):
    """Differentiate the combination of experts of MaxText."""

    def on_device(x, w):
        return _moe_combine_psum_scatter(jnp.einsum("bsd,df->bsf", x, w[0]), "expert")

    def loss(x, w):
        combined = jax.shard_map(
            on_device, mesh=experts, in_specs=(P(), P("expert")), out_specs=P("expert"), check_vma=False
        )(x, w)
        return jnp.sum(combined**2)

    return jax.grad(loss, argnums=1)(x, w)


def balance_experts(indices):
    """Return how to change the bias of each expert."""
    return jax.shard_map(
        lambda i: calculate_load_balance_updates(i, 16, 0.01, axis_names=("expert",)),
        mesh=experts,
        in_specs=P("expert"),
        out_specs=P(),
    )(indices)


def merge_attention(o, lse, query_out, query_lse):
    """Exchange heads for tokens between ranks of decode context parallelism."""

    def on_device(o, lse, query_out, query_lse):
        cache_out, cache_lse = _dcp_a2a_reduce(o, lse, "dcp", 4)
        return merge_attn_states(cache_out, cache_lse, query_out, query_lse)

    tokens = P(None, "model"), P(None, "model"), P(None, ("model", "dcp")), P(None, ("model", "dcp"))
    return jax.shard_map(
        on_device, mesh=decode, in_specs=tokens, out_specs=tokens[2:], check_vma=False
    )(o, lse, query_out, query_lse)


class Network(nn.Module):
    """Two layers, whose parameters are divided over the devices."""

    @nn.compact
    def __call__(self, x):
        """Apply both layers."""
        dense = shard_module_params(nn.Dense, "B", min_weight_size=256)
        return dense(8, name="out")(nn.relu(dense(1024, name="hidden")(x)))


def fsdp_gradient(x):
    """Initialize the network, and differentiate it."""

    def on_device(x):
        variables = Network().init(jax.random.key(0), x)
        gradient = jax.grad(lambda v: jnp.mean(Network().apply(v, x) ** 2))(variables)
        return jax.tree.map(lambda leaf: jnp.sum(leaf**2)[None], gradient)

    return jax.shard_map(
        on_device, mesh=data, in_specs=P("B"), out_specs=P("B"), check_vma=False
    )(x)
