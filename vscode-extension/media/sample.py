"""Attention, and one block around it: pytrees, static arguments and several sets of example inputs.

Save this file in a folder whose Python has JAX. Then hover over a name, choose a target with
*jaxsight: Choose Target*, or change a size below and watch the types that follow from it.
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="causal")
def attention(q, k, v, *, causal=True):
    """Scaled dot-product attention over `[batch, length, heads, features]`.

    Example inputs:
        q, k, v: f32[B, L, H, D]
        where B=4, L=128, H=8, D=64
    Example inputs (decode):
        q: f32[B, 1, H, D]
        causal: False
    """
    scale = q.shape[-1] ** -0.5
    logits = jnp.einsum("bqhd,bkhd->bhqk", q * scale, k)
    if causal:
        mask = jnp.tril(jnp.ones(logits.shape[-2:], dtype=bool))
        logits = jnp.where(mask, logits, -jnp.inf)
    weights = jax.nn.softmax(logits, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def block(params, x):
    """Self-attention and a residual connection.

    Example inputs:
        params: {'qkv': bf16[D, 3, H, K], 'out': bf16[H, K, D]}
        x: bf16[B, L, D]
        where B=2, L=64, D=256, H=4, K=64
    """
    q, k, v = jnp.moveaxis(jnp.einsum("bld,dnhk->blnhk", x, params["qkv"]), 2, 0)
    mixed = attention(q, k, v)
    return x + jnp.einsum("blhk,hkd->bld", mixed, params["out"])


def loss(params, x):
    """Mean square of the block's output.

    Example inputs:
        params: {'qkv': f32[32, 3, 2, 16], 'out': f32[2, 16, 32]}
        x: f32[2, 8, 32]
    """
    return jnp.mean(block(params, x) ** 2)


def sgd_step(params, x, rate):
    """One step of gradient descent.

    Example inputs:
        params: {'qkv': f32[32, 3, 2, 16], 'out': f32[2, 16, 32]}
        x: f32[2, 8, 32]
        rate: 0.1
    """
    value, gradients = jax.value_and_grad(loss)(params, x)
    return value, jax.tree.map(lambda p, g: p - rate * g, params, gradients)
