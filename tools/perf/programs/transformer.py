"""The gradient of a transformer with twelve layers, in plain jax.numpy."""

import jax
import jax.numpy as jnp

LAYERS = 12
VOCABULARY = 32_000
WIDTH = 768
HEADS = 12
HIDDEN = 4 * WIDTH


def make_layer(key):
    keys = jax.random.split(key, 6)
    head = WIDTH // HEADS
    return {
        "query": jax.random.normal(keys[0], (WIDTH, HEADS, head)) * 0.02,
        "key": jax.random.normal(keys[1], (WIDTH, HEADS, head)) * 0.02,
        "value": jax.random.normal(keys[2], (WIDTH, HEADS, head)) * 0.02,
        "output": jax.random.normal(keys[3], (HEADS, head, WIDTH)) * 0.02,
        "up": jax.random.normal(keys[4], (WIDTH, HIDDEN)) * 0.02,
        "down": jax.random.normal(keys[5], (HIDDEN, WIDTH)) * 0.02,
        "norm": (jnp.ones(WIDTH), jnp.ones(WIDTH)),
    }


def make_params(key):
    first, *rest = jax.random.split(key, LAYERS + 1)
    return {
        "embedding": jax.random.normal(first, (VOCABULARY, WIDTH)) * 0.02,
        "layers": [make_layer(each) for each in rest],
        "norm": jnp.ones(WIDTH),
    }


def normalize(x, scale):
    variance = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(variance + 1e-6) * scale


def rotate(x):
    length, half = x.shape[1], x.shape[-1] // 2
    frequency = 1.0 / 10_000.0 ** (jnp.arange(half) / half)
    angle = jnp.arange(length)[:, None] * frequency
    sine, cosine = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate([left * cosine - right * sine, left * sine + right * cosine], axis=-1)


def attend(x, layer):
    query = rotate(jnp.einsum("btd,dhk->bthk", x, layer["query"]))
    key = rotate(jnp.einsum("btd,dhk->bthk", x, layer["key"]))
    value = jnp.einsum("btd,dhk->bthk", x, layer["value"])
    scores = jnp.einsum("bqhk,bshk->bhqs", query, key) / query.shape[-1] ** 0.5
    causal = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), dtype=bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    mixed = jnp.einsum("bhqs,bshk->bqhk", weights, value)
    return jnp.einsum("bthk,hkd->btd", mixed, layer["output"])


def feed_forward(x, layer):
    return jax.nn.gelu(x @ layer["up"]) @ layer["down"]


def apply_layer(x, layer):
    before, between = layer["norm"]
    x = x + attend(normalize(x, before), layer)
    return x + feed_forward(normalize(x, between), layer)


def loss(params, tokens):
    x = params["embedding"][tokens[:, :-1]]
    for layer in params["layers"]:
        x = apply_layer(x, layer)
    logits = normalize(x, params["norm"]) @ params["embedding"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -chosen.mean()


def gradient(params, tokens):
    """Loss and gradient.

    Example inputs:
        params = make_params(jax.random.key(0))
        tokens: i32[8, 257]
    """
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return value, jax.tree.map(lambda g: g * 0.5000, grads)


ARGUMENTS = (
    jax.eval_shape(make_params, jax.random.key(0)),
    jax.ShapeDtypeStruct((8, 257), "int32"),
)
