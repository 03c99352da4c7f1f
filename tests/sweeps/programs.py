"""Thirty programs whose memory grows with `B`, for searches of the largest size that fits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Shapes = Callable[[int], tuple[Any, ...]]


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def bf16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def attention(q, k, v):
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0)
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)


def mlp(params, x):
    for weights in params:
        x = jnp.tanh(x @ weights)
    return x


def loss(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def step(params, x, y):
    gradients = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def convolution(x, w):
    return jax.nn.relu(
        lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )


def scanned(x):
    return lax.scan(lambda c, row: (c + row, jnp.sin(c) * row), jnp.zeros(x.shape[1]), x)


def looped(x):
    return lax.fori_loop(0, 10, lambda i, a: jnp.sin(a) + a.T @ a, x)


def barred(x):
    a = lax.optimization_barrier(jnp.sin(x))
    b = lax.optimization_barrier(jnp.cos(x))
    return a[:, ::-1] + b.sum(axis=0)


def layer_norm(x, g):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(axis=-1, keepdims=True) + 1e-6) * g


@functools.partial(jax.jit, donate_argnums=0)
def donated(x):
    return x * 2.0 + 1.0


def fft(x):
    return jnp.fft.irfftn(jnp.fft.rfftn(x, axes=(1, 2)) * 2, axes=(1, 2))


def embedded(table, ids):
    return table[ids].mean(axis=1)


def segments(x, ids):
    return jax.ops.segment_sum(x, ids, num_segments=64)


def pairwise(x):
    return jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-6).argmin(axis=1)


PROGRAMS: dict[str, tuple[Callable[..., object], Shapes]] = {
    "scaled": (lambda x: x * 2.0, lambda B: (f32(B, 128),)),
    "sum_rows": (lambda x: x.sum(axis=1), lambda B: (f32(B, 4096),)),
    "sum_columns": (lambda x: x.sum(axis=0), lambda B: (f32(B, 4096),)),
    "softmax": (jax.nn.softmax, lambda B: (f32(B, 32000),)),
    "log_softmax": (lambda x: jax.nn.log_softmax(x)[:, 0], lambda B: (bf16(B, 32000),)),
    "layer_norm": (layer_norm, lambda B: (f32(B, 768), f32(768))),
    "matmul": (lambda x, w: x @ w, lambda B: (f32(B, 1024), f32(1024, 512))),
    "gram": (lambda x: x @ x.T, lambda B: (f32(B, 64),)),
    "bf16_matmul": (lambda x, w: jax.nn.gelu(x @ w), lambda B: (bf16(B, 1024), bf16(1024, 4096))),
    "attention_batch": (attention, lambda B: (f32(B, 128, 8, 64),) * 3),
    "attention_length": (attention, lambda B: (f32(4, B, 8, 64),) * 3),
    "mlp": (mlp, lambda B: ([f32(256, 256)] * 4, f32(B, 256))),
    "loss": (loss, lambda B: ([f32(256, 256)] * 4, f32(B, 256), f32(B, 256))),
    "step": (step, lambda B: ([f32(256, 256)] * 4, f32(B, 256), f32(B, 256))),
    "step_width": (step, lambda B: ([f32(B, B)] * 2, f32(64, B), f32(64, B))),
    "convolution": (convolution, lambda B: (f32(B, 32, 32, 16), f32(3, 3, 16, 32))),
    "convolution_side": (convolution, lambda B: (f32(4, B, B, 8), f32(3, 3, 8, 8))),
    "scanned": (scanned, lambda B: (f32(64, B),)),
    "scanned_length": (scanned, lambda B: (f32(B, 256),)),
    "looped": (looped, lambda B: (f32(B, B),)),
    "barred": (barred, lambda B: (f32(B, 1000),)),
    "donated": (donated, lambda B: (f32(B, 777),)),
    "fft": (fft, lambda B: (f32(B, 64, 64),)),
    "sorted": (lambda x: jnp.sort(x, axis=-1), lambda B: (f32(B, 1000),)),
    "top_k": (lambda x: lax.top_k(x, 8), lambda B: (f32(B, 5000),)),
    "cumsum": (lambda x: jnp.cumsum(x, axis=1), lambda B: (f32(B, 333),)),
    "transposed": (lambda x: x.transpose(2, 0, 1) + 1.0, lambda B: (f32(B, 33, 65),)),
    "embedded": (embedded, lambda B: (f32(5000, 128), i32(B, 64))),
    "segments": (segments, lambda B: (f32(B, 128), i32(B))),
    "pairwise": (pairwise, lambda B: (f32(B, 3),)),
}  # fmt: skip
