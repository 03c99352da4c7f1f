"""The gradient of two checkpointed layers in a scan: loops in loops, bfloat16, rematerialization.

Try `jaxsight sourcerize examples/sliding_window.py:grad_fn --style pretty`. The function is the
example of jax_sourceror's README.
"""

from functools import partial

import jax
import jax.numpy as jnp

block_len = 64
seq_len = 128
batch = 4
num_heads = 2
embed_size = 32
num_layers = 2
head_size = 16


def pseudo_sliding_window_attention(x):
    # (this is not attention, but is minimized from attn)
    # dims are [batch, len, num_heads, head_dim]
    def block(block_idx):
        query_block = jax.lax.dynamic_slice_in_dim(x, block_idx, block_len, axis=1)
        weights = jnp.sum(query_block, axis=3)  # [batch, len, num_heads]
        weights = jax.lax.broadcast_in_dim(
            weights, (batch, block_len, num_heads, block_len), (0, 1, 2)
        )  # [batch, len, num_heads, len]
        bias = jnp.ones(block_len)
        bias = jnp.broadcast_to(bias, (batch, block_len, num_heads, block_len))
        weights = weights + bias
        return jnp.einsum("bqhk,bkhd->bqhd", weights, query_block).astype(query_block.dtype)

    num_blocks = seq_len // block_len
    blocked_attn = jax.lax.map(
        block, jnp.arange(0, num_blocks)
    )  # [num_blocks, batch, len, num_heads, head_dim]
    return jnp.concatenate(blocked_attn, axis=1)


def fwd(params, x):
    @partial(jax.checkpoint, prevent_cse=False)
    def layer(x, params):
        qkv, o = params
        y = jnp.einsum("bte,hde->bthd", x, qkv)
        y = pseudo_sliding_window_attention(y)
        z = jnp.einsum("bthd,hde->bte", y, o)
        return z, None

    x, _ = jax.lax.scan(layer, x, params)
    return x


def loss_fn(params, x):
    x = fwd(params, x)
    return jnp.mean(x)


def grad_fn(params, x):
    """The loss and its gradient by the parameters.

    Example inputs:
        params: (bf16[L, H, D, E], bf16[L, H, D, E])
        x: bf16[4, 128, 32]
        where L=2, H=2, D=16, E=32
    """
    loss, grad = jax.value_and_grad(loss_fn)(params, x)
    return loss, *jax.tree_util.tree_leaves(grad)
