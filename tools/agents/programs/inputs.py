import jax.numpy as jnp


def attention(q, k, v, scale):
    logits = jnp.einsum("bqd,bkd->bqk", q, k) * scale
    weights = jnp.exp(logits - logits.max(-1, keepdims=True))
    return jnp.einsum("bqk,bkd->bqd", weights / weights.sum(-1, keepdims=True), v)
