"""Thirty large workloads: attention, mixtures of experts, convolutions, scans, products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def _norm(x: Any, weight: Any) -> Any:
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype) * weight


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """Attend causally, 32 heads of 128.

    Example inputs:
        q, k, v: bf16[4, 4096, 32, 128]
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    length = q.shape[1]
    mask = jnp.arange(length)[:, None] >= jnp.arange(length)
    weights = jax.nn.softmax(jnp.where(mask, scores * 128**-0.5, -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", weights.astype(q.dtype), v)


def grouped_query_attention(q: Any, k: Any, v: Any) -> Any:
    """Attend with 8 heads of keys for 64 of queries.

    Example inputs:
        q: bf16[2, 4096, 64, 128]
        k, v: bf16[2, 4096, 8, 128]
    """
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def decoding_attention(q: Any, keys: Any, values: Any, length: Any) -> Any:
    """Attend from one position to a cache.

    Example inputs:
        q: bf16[64, 32, 128]
        keys, values: bf16[64, 8192, 8, 128]
        length: i32[64]
    """
    grouped = q.reshape(64, 8, 4, 128)
    scores = jnp.einsum("bhgd,bkhd->bhgk", grouped, keys).astype(jnp.float32)
    valid = jnp.arange(keys.shape[1]) < length[:, None]
    weights = jax.nn.softmax(jnp.where(valid[:, None, None], scores, -1e30))
    return jnp.einsum("bhgk,bkhd->bhgd", weights.astype(q.dtype), values)


def windowed_attention(q: Any, k: Any, v: Any) -> Any:
    """Attend within blocks of 512 and the block before.

    Example inputs:
        q, k, v: bf16[4, 16, 16, 512, 64]
    """
    near = [jnp.concatenate([jnp.roll(x, 1, 2), x], 3) for x in (k, v)]
    scores = jnp.einsum("bhnqd,bhnkd->bhnqk", q, near[0]).astype(jnp.float32)
    return jnp.einsum("bhnqk,bhnkd->bhnqd", jax.nn.softmax(scores).astype(q.dtype), near[1])


def online_attention(q: Any, k: Any, v: Any) -> Any:
    """Attend block by block with a running maximum, as FlashAttention does.

    Example inputs:
        q: bf16[16, 4096, 64]
        k, v: bf16[16, 16, 256, 64]
    """

    def step(carry: Any, block: Any) -> tuple[Any, None]:
        highest, total, out = carry
        keys, values = block
        scores = jnp.einsum("hqd,hkd->hqk", q, keys).astype(jnp.float32)
        new = jnp.maximum(highest, scores.max(-1))
        weights = jnp.exp(scores - new[..., None])
        scale = jnp.exp(highest - new)
        added = jnp.einsum("hqk,hkd->hqd", weights.astype(q.dtype), values)
        return (new, total * scale + weights.sum(-1), out * scale[..., None] + added), None

    start = (jnp.full((16, 4096), -jnp.inf), jnp.zeros((16, 4096)), jnp.zeros((16, 4096, 64)))
    (_, total, out), _ = lax.scan(step, start, (k.swapaxes(0, 1), v.swapaxes(0, 1)))
    return out / total[..., None]


def linear_attention(q: Any, k: Any, v: Any) -> Any:
    """Attend with a feature map, in linear time.

    Example inputs:
        q, k, v: bf16[8, 8192, 16, 64]
    """
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    state = jnp.einsum("bthd,bthe->bhde", k, v)
    return (
        jnp.einsum("bthd,bhde->bthe", q, state)
        / jnp.einsum("bthd,bhd->bth", q, k.sum(1))[..., None]
    )


def attention_gradient(q: Any, k: Any, v: Any) -> Any:
    """Differentiate causal attention.

    Example inputs:
        q, k, v: bf16[2, 2048, 16, 128]
    """
    return jax.grad(lambda *a: causal_attention(*a).astype(jnp.float32).sum(), (0, 1, 2))(q, k, v)


def latent_attention(x: Any, down: Any, up: Any, q: Any) -> Any:
    """Attend to keys and values from a latent vector.

    Example inputs:
        x: bf16[4, 2048, 2048]
        down: bf16[2048, 512]
        up: bf16[512, 16, 256]
        q: bf16[4, 2048, 16, 128]
    """
    both = jnp.einsum("btl,lhe->bthe", x @ down, up)
    return jax.nn.dot_product_attention(q, both[..., :128], both[..., 128:])


def rotary(q: Any, positions: Any) -> Any:
    """Rotate queries by their positions.

    Example inputs:
        q: bf16[8, 4096, 32, 128]
        positions: i32[4096]
    """
    angles = positions[:, None] * 10000.0 ** (-jnp.arange(64) / 64)
    sine, cosine = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    first, second = jnp.split(q.astype(jnp.float32), 2, -1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return jnp.concatenate(turned, -1).astype(q.dtype)


def experts_dense(x: Any, router: Any, w1: Any, w2: Any) -> Any:
    """Mix all of 8 experts by weights.

    Example inputs:
        x: bf16[4096, 1024]
        router: bf16[1024, 8]
        w1: bf16[8, 1024, 4096]
        w2: bf16[8, 4096, 1024]
    """
    gates = jax.nn.softmax((x @ router).astype(jnp.float32)).astype(x.dtype)
    hidden = jax.nn.silu(jnp.einsum("td,edf->etf", x, w1))
    return jnp.einsum("etf,efd,te->td", hidden, w2, gates)


def experts_sorted(x: Any, router: Any, w1: Any, w2: Any) -> Any:
    """Sort tokens by expert, and multiply ragged groups.

    Example inputs:
        x: bf16[8192, 1024]
        router: bf16[1024, 16]
        w1: bf16[16, 1024, 2048]
        w2: bf16[16, 2048, 1024]
    """
    choice = jnp.argmax(x @ router, -1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=16)
    hidden = jax.nn.gelu(lax.ragged_dot(x[order], w1, sizes))
    return jnp.zeros_like(x).at[order].set(lax.ragged_dot(hidden, w2, sizes))


def experts_capacity(x: Any, router: Any, w1: Any, w2: Any) -> Any:
    """Dispatch tokens to the two best experts by one-hot products.

    Example inputs:
        x: bf16[8, 1024, 1024]
        router: bf16[1024, 32]
        w1: bf16[32, 1024, 4096]
        w2: bf16[32, 4096, 1024]
    """
    gates, choice = lax.top_k(jax.nn.softmax((x @ router).astype(jnp.float32)), 2)
    chosen = jax.nn.one_hot(choice, 32)
    place = jnp.cumsum(chosen.sum(2), 1)[:, :, None] * chosen
    slots = jax.nn.one_hot(place.sum(-1) - 1, 64) * (place.sum(-1, keepdims=True) > 0)
    sent = jnp.einsum("gske,gskc->gsec", chosen, slots).astype(x.dtype)
    inside = jax.nn.silu(jnp.einsum("gsec,gsd,edf->gecf", sent, x, w1))
    back = jnp.einsum("gske,gskc,gsk->gsec", chosen, slots, gates).astype(x.dtype)
    return jnp.einsum("gecf,efd,gsec->gsd", inside, w2, back)


def feed_forward(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """Apply SwiGLU.

    Example inputs:
        x: bf16[8192, 4096]
        gate, up: bf16[4096, 14336]
        down: bf16[14336, 4096]
    """
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def feed_forward_gradient(x: Any, up: Any, down: Any) -> Any:
    """Differentiate an MLP with squared ReLU.

    Example inputs:
        x: bf16[16384, 1024]
        up: bf16[1024, 4096]
        down: bf16[4096, 1024]
    """

    def loss(up: Any, down: Any) -> Any:
        return jnp.mean((jnp.square(jax.nn.relu(x @ up)) @ down).astype(jnp.float32) ** 2)

    return jax.grad(loss, (0, 1))(up, down)


def quantized_product(x: Any, w: Any, scale: Any) -> Any:
    """Multiply with int8 weights and their scales.

    Example inputs:
        x: bf16[512, 8192]
        w: i8[8192, 8192]
        scale: f32[8192]
    """
    return (x @ w.astype(jnp.bfloat16)).astype(jnp.float32) * scale


def product_f8(a: Any, b: Any) -> Any:
    """Multiply float8 matrices.

    Example inputs:
        a: float8_e4m3fn[8192, 8192]
        b: float8_e4m3fn[8192, 8192]
    """
    return lax.dot(a, b, preferred_element_type=jnp.bfloat16)


def tall_product(a: Any, b: Any) -> Any:
    """Multiply a tall matrix by its like: a long contraction.

    Example inputs:
        a: f32[1048576, 128]
        b: f32[1048576, 128]
    """
    return a.T @ b


def logits_loss(hidden: Any, table: Any, labels: Any) -> Any:
    """Take the loss of a large vocabulary.

    Example inputs:
        hidden: bf16[4096, 2048]
        table: bf16[2048, 128256]
        labels: i32[4096]
    """
    logits = (hidden @ table).astype(jnp.float32)
    return (
        jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
    ).mean()


def residual_block(x: Any, w1: Any, w2: Any, scale: Any) -> Any:
    """Convolve twice, normalize, and add.

    Example inputs:
        x: bf16[256, 28, 28, 256]
        w1, w2: bf16[3, 3, 256, 256]
        scale: bf16[256]
    """

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def normalize(x: Any) -> Any:
        wide = x.astype(jnp.float32)
        mean, deviation = wide.mean((0, 1, 2)), wide.std((0, 1, 2))
        return ((wide - mean) / (deviation + 1e-5)).astype(x.dtype) * scale

    return jax.nn.relu(x + normalize(convolve(jax.nn.relu(normalize(convolve(x, w1))), w2)))


def strided_convolution_gradient(x: Any, w: Any) -> Any:
    """Differentiate a strided convolution.

    Example inputs:
        x: f32[128, 56, 56, 128]
        w: f32[3, 3, 128, 256]
    """

    def loss(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.sum(y * y)

    return jax.grad(loss, (0, 1))(x, w)


def convolution_3d(x: Any, w: Any) -> Any:
    """Convolve volumes.

    Example inputs:
        x: bf16[8, 32, 64, 64, 64]
        w: bf16[3, 3, 3, 64, 64]
    """
    return lax.conv_general_dilated(
        x, w, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    )


def causal_convolution(x: Any, w: Any) -> Any:
    """Convolve each channel along time.

    Example inputs:
        x: bf16[16, 8192, 1024]
        w: bf16[4, 1, 1024]
    """
    return lax.conv_general_dilated(
        x, w, (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=1024
    )


def state_space_scan(x: Any, decay: Any) -> Any:
    """Scan a diagonal recurrence associatively.

    Example inputs:
        x: f32[8, 4096, 1024]
        decay: f32[8, 4096, 1024]
    """

    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lax.associative_scan(combine, (jax.nn.sigmoid(decay), x), axis=1)[1]


def recurrent_scan(w: Any, u: Any, xs: Any) -> Any:
    """Run a gated recurrence over time.

    Example inputs:
        w, u: bf16[1024, 3072]
        xs: bf16[512, 64, 1024]
    """

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        reset, update, new = jnp.split(h @ w + x @ u, 3, -1)
        h = jax.nn.sigmoid(update) * h + jax.nn.tanh(new * jax.nn.sigmoid(reset))
        return h, h

    return lax.scan(step, jnp.zeros((64, 1024), jnp.bfloat16), xs)[1]


def layers_scan(x: Any, w1: Any, w2: Any) -> Any:
    """Scan over the layers of a residual network.

    Example inputs:
        x: bf16[8192, 2048]
        w1: bf16[24, 2048, 4096]
        w2: bf16[24, 4096, 2048]
    """

    def layer(x: Any, w: Any) -> tuple[Any, None]:
        return x + jax.nn.gelu(_norm(x, 1) @ w[0]) @ w[1], None

    return lax.scan(layer, x, (w1, w2))[0]


def embedding_bag(table: Any, rows: Any, weights: Any) -> Any:
    """Look up rows, and add them up by weights.

    Example inputs:
        table: f32[1000000, 128]
        rows: i32[16384, 32]
        weights: f32[16384, 32]
    """
    return jnp.einsum("bnd,bn->bd", table[rows], weights)


def sampling(key: Any, logits: Any) -> Any:
    """Draw tokens of the 50 most likely.

    Example inputs:
        key: key<fry>[]
        logits: f32[256, 128256]
    """
    best, where = lax.top_k(logits, 50)
    chosen = jax.random.categorical(key, best / 0.7)
    return jnp.take_along_axis(where, chosen[:, None], 1)


def adam_step(parameters: Any, gradient: Any, first: Any, second: Any, count: Any) -> Any:
    """Update parameters.

    Example inputs:
        parameters: bf16[8192, 8192]
        gradient: bf16[8192, 8192]
        first, second: f32[8192, 8192]
        count: i32[]
    """
    wide = gradient.astype(jnp.float32)
    first = 0.9 * first + 0.1 * wide
    second = 0.95 * second + 0.05 * wide * wide
    step = first / (1 - 0.9**count) / (jnp.sqrt(second / (1 - 0.95**count)) + 1e-8)
    return (parameters.astype(jnp.float32) - 3e-4 * step).astype(parameters.dtype), first, second


def spectral_filter(x: Any, kernel: Any) -> Any:
    """Filter images by their spectrum.

    Example inputs:
        x: f32[64, 1024, 1024]
        kernel: c64[1024, 513]
    """
    return jnp.fft.irfft2(jnp.fft.rfft2(x) * kernel)


def pairwise_potential(positions: Any) -> Any:
    """Differentiate a potential of all pairs.

    Example inputs:
        positions: f32[8192, 3]
    """

    def energy(positions: Any) -> Any:
        squared = jnp.sum((positions[:, None] - positions) ** 2, -1) + jnp.eye(positions.shape[0])
        inverse = 1 / squared**3
        return jnp.sum(inverse * inverse - inverse)

    return jax.grad(energy)(positions)
