"""Programs of realistic sizes, to hold estimates against measured times."""

import jax
import jax.numpy as jnp
from jax import lax


def matmul_bf16(a, b):
    """
    Example inputs:
        a: bf16[8192, 8192]
        b: bf16[8192, 8192]
    """
    return a @ b


def matmul_bf16_small(a, b):
    """
    Example inputs:
        a: bf16[512, 512]
        b: bf16[512, 512]
    """
    return a @ b


def matmul_f32(a, b):
    """
    Example inputs:
        a: f32[4096, 4096]
        b: f32[4096, 4096]
    """
    return a @ b


def matmul_f32_highest(a, b):
    """
    Example inputs:
        a: f32[4096, 4096]
        b: f32[4096, 4096]
    """
    return jnp.matmul(a, b, precision="highest")


def matmul_skinny(a, b):
    """
    Example inputs:
        a: bf16[16, 8192]
        b: bf16[8192, 8192]
    """
    return a @ b


def matmul_batched(a, b):
    """
    Example inputs:
        a: bf16[256, 512, 64]
        b: bf16[256, 64, 512]
    """
    return a @ b


def matmul_i8(a, b):
    """
    Example inputs:
        a: i8[4096, 4096]
        b: i8[4096, 4096]
    """
    return lax.dot(a, b, preferred_element_type=jnp.int32)


def matvec(a, b):
    """
    Example inputs:
        a: f32[16384, 16384]
        b: f32[16384]
    """
    return a @ b


def matmul_bias_gelu(a, b, c):
    """
    Example inputs:
        a: bf16[8192, 4096]
        b: bf16[4096, 4096]
        c: bf16[4096]
    """
    return jax.nn.gelu(a @ b + c)


def elementwise(x):
    """
    Example inputs:
        x: f32[16384, 8192]
    """
    return jnp.sin(x) * 2 + x**3


def elementwise_heavy(x):
    """
    Example inputs:
        x: f32[4096, 8192]
    """
    for _ in range(20):
        x = jnp.tanh(x) * jnp.exp(-x * x) + jnp.log1p(x * x)
    return x


def add_bf16(x, y):
    """
    Example inputs:
        x: bf16[16384, 16384]
        y: bf16[16384, 16384]
    """
    return x + y


def sum_rows(x):
    """
    Example inputs:
        x: f32[16384, 8192]
    """
    return jnp.sum(x, axis=1)


def sum_columns(x):
    """
    Example inputs:
        x: f32[16384, 8192]
    """
    return jnp.sum(x, axis=0)


def sum_all(x):
    """
    Example inputs:
        x: f32[16384, 8192]
    """
    return jnp.sum(x)


def softmax_rows(x):
    """
    Example inputs:
        x: f32[16384, 4096]
    """
    return jax.nn.softmax(x, axis=-1)


def layernorm(x, g, b):
    """
    Example inputs:
        x: bf16[32768, 2048]
        g: f32[2048]
        b: f32[2048]
    """
    x = x.astype(jnp.float32)
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return ((x - m) * lax.rsqrt(v + 1e-6) * g + b).astype(jnp.bfloat16)


def layernorm_grad(x, g, b):
    """
    Example inputs:
        x: bf16[32768, 2048]
        g: f32[2048]
        b: f32[2048]
    """
    return jax.grad(
        lambda x, g, b: jnp.sum(layernorm(x, g, b).astype(jnp.float32) ** 2), argnums=(0, 1, 2)
    )(x, g, b)


def transpose_big(x):
    """
    Example inputs:
        x: f32[8192, 16384]
    """
    return x.T + 0


def transpose_4d(x):
    """
    Example inputs:
        x: bf16[64, 1024, 16, 64]
    """
    return jnp.transpose(x, (0, 2, 1, 3)) * 1


def fft_batch(x):
    """
    Example inputs:
        x: c64[4096, 4096]
    """
    return jnp.fft.fft(x)


def fft3(x):
    """
    Example inputs:
        x: f32[256, 256, 256]
    """
    return jnp.fft.irfftn(jnp.fft.rfftn(x) * 0.5)


def sort_rows(x):
    """
    Example inputs:
        x: f32[4096, 4096]
    """
    return jnp.sort(x, axis=-1)


def sort_long(x):
    """
    Example inputs:
        x: f32[16777216]
    """
    return jnp.sort(x)


def argsort_long(x):
    """
    Example inputs:
        x: f32[4194304]
    """
    return jnp.argsort(x)


def top_k(x):
    """
    Example inputs:
        x: f32[512, 50257]
    """
    return lax.top_k(x, 40)


def cumsum_rows(x):
    """
    Example inputs:
        x: f32[8192, 4096]
    """
    return jnp.cumsum(x, axis=-1)


def gather_rows(t, i):
    """
    Example inputs:
        t: f32[100000, 512]
        i: i32[65536]
    """
    return t[i]


def scatter_add(t, i, u):
    """
    Example inputs:
        t: f32[100000, 128]
        i: i32[65536]
        u: f32[65536, 128]
    """
    return t.at[i].add(u)


def segment_sum(u, i):
    """
    Example inputs:
        u: f32[1000000, 16]
        i: i32[1000000]
    """
    return jax.ops.segment_sum(u, i, num_segments=50000)


def conv2d(x, w):
    """
    Example inputs:
        x: f32[64, 56, 56, 64]
        w: f32[3, 3, 64, 128]
    """
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def conv2d_bf16(x, w):
    """
    Example inputs:
        x: bf16[128, 56, 56, 128]
        w: bf16[3, 3, 128, 128]
    """
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def conv_depthwise(x, w):
    """
    Example inputs:
        x: f32[64, 112, 112, 96]
        w: f32[3, 3, 1, 96]
    """
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=96
    )


def max_pool(x):
    """
    Example inputs:
        x: f32[64, 112, 112, 64]
    """
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def attention(q, k, v):
    """
    Example inputs:
        q: bf16[8, 2048, 16, 64]
        k: bf16[8, 2048, 16, 64]
        v: bf16[8, 2048, 16, 64]
    """
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8
    s = jnp.where(jnp.tril(jnp.ones((2048, 2048), bool)), s, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1).astype(jnp.bfloat16), v)


def attention_grad(q, k, v):
    """
    Example inputs:
        q: bf16[4, 1024, 16, 64]
        k: bf16[4, 1024, 16, 64]
        v: bf16[4, 1024, 16, 64]
    """

    def f(q, k, v):
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8
        return jnp.sum(
            jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1).astype(jnp.bfloat16), v).astype(
                jnp.float32
            )
        )

    return jax.grad(f, argnums=(0, 1, 2))(q, k, v)


def dpa(q, k, v):
    """
    Example inputs:
        q: bf16[8, 2048, 16, 64]
        k: bf16[8, 2048, 16, 64]
        v: bf16[8, 2048, 16, 64]
    """
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def mlp_step(w1, w2, x, y):
    """
    Example inputs:
        w1: f32[1024, 4096]
        w2: f32[4096, 1024]
        x: f32[8192, 1024]
        y: f32[8192, 1024]
    """

    def loss(w1, w2):
        return jnp.mean((jax.nn.relu(x @ w1) @ w2 - y) ** 2)

    g1, g2 = jax.grad(loss, argnums=(0, 1))(w1, w2)
    return w1 - 0.1 * g1, w2 - 0.1 * g2


def adam(p, g, m, v):
    """
    Example inputs:
        p: f32[4096, 16384]
        g: f32[4096, 16384]
        m: f32[4096, 16384]
        v: f32[4096, 16384]
    """
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def block(x, wq, wk, wv, wo, w1, w2):
    """
    Example inputs:
        x: bf16[4, 2048, 1024]
        wq, wk, wv, wo: bf16[1024, 1024]
        w1: bf16[1024, 4096]
        w2: bf16[4096, 1024]
    """

    def norm(x):
        x = x.astype(jnp.float32)
        return (x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)).astype(jnp.bfloat16)

    h = norm(x)
    q, k, v = ((h @ w).reshape(4, 2048, 16, 64) for w in (wq, wk, wv))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8
    a = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1).astype(jnp.bfloat16), v)
    x = x + a.reshape(4, 2048, 1024) @ wo
    return x + jax.nn.gelu(norm(x) @ w1) @ w2


def block_grad(x, wq, wk, wv, wo, w1, w2):
    """
    Example inputs:
        x: bf16[4, 2048, 1024]
        wq, wk, wv, wo: bf16[1024, 1024]
        w1: bf16[1024, 4096]
        w2: bf16[4096, 1024]
    """
    return jax.grad(
        lambda *a: jnp.sum(block(*a).astype(jnp.float32)), argnums=(0, 1, 2, 3, 4, 5, 6)
    )(x, wq, wk, wv, wo, w1, w2)


def nbody(x):
    """
    Example inputs:
        x: f32[16384, 3]
    """
    d = x[:, None] - x[None]
    r = jnp.sum(d * d, -1) + 1e-3
    return jnp.sum(d / (r * jnp.sqrt(r))[..., None], 1)


def heat_loop(x):
    """
    Example inputs:
        x: f32[2048, 2048]
    """

    def step(i, x):
        return x + 0.1 * (
            jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x
        )

    return lax.fori_loop(0, 50, step, x)


def rnn_scan(w, xs):
    """
    Example inputs:
        w: f32[1024, 1024]
        xs: f32[128, 64, 1024]
    """

    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h

    return lax.scan(step, jnp.zeros((64, 1024)), xs)[1]


def random_normal(key):
    """
    Example inputs:
        key: key<fry>[]
    """
    return jax.random.normal(key, (8192, 8192))


def cross_entropy(logits, labels):
    """
    Example inputs:
        logits: bf16[8192, 50304]
        labels: i32[8192]
    """
    logits = logits.astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def cross_entropy_grad(logits, labels):
    """
    Example inputs:
        logits: bf16[8192, 50304]
        labels: i32[8192]
    """
    return jax.grad(cross_entropy)(logits, labels)


def cholesky(a):
    """
    Example inputs:
        a: f32[2048, 2048]
    """
    return jnp.linalg.cholesky(a @ a.T + 100 * jnp.eye(2048))


def one_hot_lookup(i, t):
    """
    Example inputs:
        i: i32[4096]
        t: f32[8192, 512]
    """
    return jax.nn.one_hot(i, 8192) @ t


def concat_pad(x, y):
    """
    Example inputs:
        x: f32[8192, 4096]
        y: f32[8192, 4096]
    """
    return jnp.pad(jnp.concatenate([x, y], 1), ((1, 1), (1, 1)))


def masked_mean(x, m):
    """
    Example inputs:
        x: f32[8192, 8192]
        m: bool[8192, 8192]
    """
    return jnp.sum(jnp.where(m, x, 0)) / jnp.sum(m)


def var_std(x):
    """
    Example inputs:
        x: f32[8192, 8192]
    """
    return jnp.var(x, axis=0), jnp.std(x, axis=1)


def histogram(x):
    """
    Example inputs:
        x: f32[4194304]
    """
    return jnp.histogram(x, bins=100, range=(-3, 3))[0]


def checkpointed(w, x):
    """
    Example inputs:
        w: f32[8, 2048, 2048]
        x: f32[2048, 2048]
    """

    def loss(w):
        def layer(x, w):
            return jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(x, w), None

        return jnp.sum(lax.scan(layer, x, w)[0])

    return jax.grad(loss)(w)
