"""Call `ringattention_jax.py` as its README does, inside of `shard_map`."""

import functools

import jax
from jax.sharding import PartitionSpec as P
from ringattention_inference import ring_attention_inference
from ringattention_jax import ring_attention

AUTO = jax.sharding.AxisType.Auto
mesh = jax.make_mesh((2, 4), ("dp", "sp"), axis_types=(AUTO,) * 2)
SPEC = P("dp", "sp", None, None)
BLOCKS = dict(
    causal_block_size=1,
    deterministic=True,
    dropout_rng=None,
    attn_pdrop=0.0,
    query_chunk_size=64,
    key_chunk_size=64,
    dtype=jax.numpy.float32,
    policy=jax.checkpoint_policies.nothing_saveable,
    precision=None,
    prevent_cse=True,
)


@jax.jit
def attention(q, k, v):
    """Attend to all blocks of the sequence, which travel around the ring."""

    def on_device(q, k, v):
        return ring_attention(q, k, v, None, None, None, "sp", True, BLOCKS)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(SPEC, SPEC, SPEC), out_specs=SPEC, check_vma=False
    )(q, k, v)


@jax.jit
def attention_gradient(q, k, v):
    """Differentiate the sum of the results."""
    return jax.grad(lambda *inputs: attention(*inputs).sum(), argnums=(0, 1, 2))(q, k, v)


@jax.jit
def inference(q, k, v, mask):
    """Attend with a mask, and one query for each row."""

    def on_device(q, k, v, mask):
        return ring_attention_inference(q, k, v, mask, "sp", True)

    query, whole = P("dp", None, None, None), P("dp", None, None, None)
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(query, SPEC, SPEC, whole), out_specs=query, check_vma=False
    )(q, k, v, mask)
