"""A small transformer of plain functions and dictionaries, as people write it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

HEADS, WIDTH, LENGTH, WORDS = 4, 64, 16, 256


def norm(x: Any, p: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p["g"] + p["b"]


def attention(x: Any, p: Any) -> Any:
    b, t, d = x.shape
    qkv = x @ p["qkv"]["w"] + p["qkv"]["b"]
    q, k, v = jnp.split(qkv, 3, axis=-1)
    q, k, v = (a.reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(d // HEADS)
    mask = jnp.tril(jnp.ones((t, t), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e10), axis=-1)
    out = jnp.einsum("bhqk,bhkd->bhqd", weights, v)
    out = out.transpose(0, 2, 1, 3).reshape(b, t, d)
    return out @ p["proj"]["w"] + p["proj"]["b"]


def mlp(x: Any, p: Any) -> Any:
    h = jax.nn.gelu(x @ p["fc"]["w"] + p["fc"]["b"])
    return h @ p["proj"]["w"] + p["proj"]["b"]


def block(x: Any, p: Any) -> Any:
    x = x + attention(norm(x, p["ln1"]), p["attn"])
    return x + mlp(norm(x, p["ln2"]), p["mlp"])


def logits(params: Any, tokens: Any) -> Any:
    x = params["wte"][tokens] + params["wpe"][: tokens.shape[1]]
    for p in params["h"]:
        x = block(x, p)
    return norm(x, params["ln_f"]) @ params["wte"].T


def loss(params: Any, tokens: Any, targets: Any) -> Any:
    logp = jax.nn.log_softmax(logits(params, tokens))
    return -jnp.take_along_axis(logp, targets[..., None], axis=-1).mean()


def arguments(layers: int) -> tuple[Any, Any, Any]:
    """The types of the parameters, of two rows of tokens, and of what shall follow these."""

    def f32(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def linear(rows: int, columns: int) -> Any:
        return {"w": f32(rows, columns), "b": f32(columns)}

    scale = {"g": f32(WIDTH), "b": f32(WIDTH)}
    layer = {
        "ln1": scale,
        "ln2": scale,
        "attn": {"qkv": linear(WIDTH, 3 * WIDTH), "proj": linear(WIDTH, WIDTH)},
        "mlp": {"fc": linear(WIDTH, 4 * WIDTH), "proj": linear(4 * WIDTH, WIDTH)},
    }
    embeddings = {"wte": f32(WORDS, WIDTH), "wpe": f32(LENGTH, WIDTH)}
    tokens = jax.ShapeDtypeStruct((2, LENGTH), jnp.int32)
    return {**embeddings, "ln_f": scale, "h": [layer] * layers}, tokens, tokens
