import jax
import jax.numpy as jnp


def scores(queries, keys, values):
    """Return attention over a long sequence.

    Example inputs:
        queries: bf16[B, 16, 8192, 64]
        keys: bf16[B, 16, 8192, 64]
        values: bf16[B, 16, 8192, 64]
        where B=4
    """
    logits = jnp.einsum("bhqd,bhkd->bhqk", queries, keys)
    weights = jax.nn.softmax(logits.astype(jnp.float32), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights.astype(jnp.bfloat16), values)
