"""Programs that people write, with the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def struct(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


KEY = struct(2, dtype=jnp.uint32)
INT = struct(dtype=jnp.int32)


@dataclass(frozen=True)
class WholeProgram:
    function: Callable[..., Any]
    structs: tuple[jax.ShapeDtypeStruct, ...]


PROGRAMS: list[WholeProgram] = []


def program(*structs: jax.ShapeDtypeStruct) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(WholeProgram(function, structs))
        return function

    return declare


@program(struct(2, 4, 8), struct(2, 6, 8), struct(2, 6, 8))
def masked_attention(q, k, v):
    scores = jnp.einsum("btd,bsd->bts", q, k) / np.sqrt(8.0)
    mask = jnp.tril(jnp.ones((4, 6), bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v


@program(struct(4, 8), struct(8), struct(8))
def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale + bias


@program(struct(4, 3), struct(3, 16), struct(16), struct(16, 2))
def perceptron(x, w, b, out):
    return jax.nn.gelu(x @ w + b) @ out


@program(struct(4, 4), struct(7, 4))
def recurrent(w, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(4), xs)


@program(struct(3, 3), struct(5, 3))
def gradient_of_a_scan(w, xs):
    def loss(w):
        return lax.scan(lambda h, x: (jnp.sin(w @ h + x), None), jnp.ones(3), xs)[0].sum()

    return jax.value_and_grad(loss)(w)


@program(struct(4), struct(4), struct(4), struct(4), INT)
def adam(p, g, m, v, count):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    t = count + 1
    scale = jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return p - 1e-3 * scale * m / (jnp.sqrt(v) + 1e-8), m, v, t


@program(struct(8, 3), struct(8, dtype=jnp.int32), struct(3, 5))
def cross_entropy_gradient(x, labels, w):
    def loss(w):
        logits = jax.nn.log_softmax(x @ w)
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean()

    return jax.grad(loss)(w)


@program(struct(1, 8, 8, 1), struct(3, 3, 1, 2))
def gradient_of_a_convolution(x, w):
    def loss(w):
        y = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        y = lax.reduce_window(
            jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        )
        return jnp.sum(y**2)

    return jax.grad(loss)(w)


@program(KEY)
def normal_samples(key):
    first, second = jax.random.split(key)
    return jax.random.normal(first, (3, 2)), jax.random.randint(second, (4,), 0, 10)


@program(KEY, struct(5, 3))
def dropout(key, x):
    keep = jax.random.bernoulli(jax.random.fold_in(key, 7), 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0)


@program(KEY, struct(4, 6))
def categorical_samples(key, logits):
    return jax.random.categorical(key, logits), jax.random.permutation(key, 5)


@program(struct(4, 4), struct(4))
def cholesky_solve(a, b):
    factor = jax.scipy.linalg.cho_factor(a @ a.T + jnp.eye(4))
    return jax.scipy.linalg.cho_solve(factor, b)


@program(struct(4, 4), struct(4, 2))
def linear_solve(a, b):
    return jnp.linalg.solve(a, b), jnp.linalg.slogdet(a)


@program(struct(5, 3), struct(5))
def least_squares(a, b):
    q, r = jnp.linalg.qr(a)
    return jax.scipy.linalg.solve_triangular(r, q.T @ b)


@program(struct(4, 4))
def decompositions(a):
    return jnp.linalg.svd(a), jnp.linalg.eigh(a + a.T)


@program(INT, struct(4))
def branches(i, x):
    x = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
    return lax.switch(i, [lambda x: x + 1, lambda x: x * 2, jnp.exp], x)


@program(struct())
def newton(x):
    def step(state):
        guess, count = state
        return guess - (guess**2 - x) / (2 * guess), count + 1

    return lax.while_loop(lambda state: state[1] < 20, step, (x + 1.0, 0))


@program(struct(4, 4))
def power_iteration(a):
    def step(_, v):
        v = a @ v
        return v / jnp.linalg.norm(v)

    return lax.fori_loop(0, 10, step, jnp.ones(4))


@program(struct(8, 3), struct(4, dtype=jnp.int32), struct(4, 3))
def table_update(table, rows, values):
    return table[rows], table.at[rows].add(values), table.at[rows].set(0), table.at[0].max(1.0)


@program(struct(6), struct(4, dtype=jnp.int32))
def sorted_and_searched(x, y):
    return jnp.sort(x), jnp.argsort(x), jnp.median(x), jnp.searchsorted(jnp.sort(x), 0.5), y.sort()


@program(struct(5, 3))
def reductions(x):
    return (
        x.sum(0), x.max(), x.argmin(1), jnp.prod(x), jnp.cumsum(x, 1),
        jax.nn.logsumexp(x), jnp.any(x > 0),
    )  # fmt: skip


@program(struct(16))
def spectrum(x):
    return jnp.abs(jnp.fft.rfft(x)), jnp.fft.ifft(jnp.fft.fft(x)).real


@program(struct(3, 4))
def low_precision(x):
    half = x.astype(jnp.bfloat16)
    return (half * np.array([1, 2.5, -0.0, np.nan], jnp.bfloat16)).astype(jnp.float32), half.sum()


@program(struct(4, dtype=jnp.int8), struct(4, dtype=jnp.uint32))
def integers(a, b):
    return a // 3, a % 3, b >> 2, b ^ 0xFF, lax.population_count(b), a.astype(jnp.int32) ** 2


@program(struct(3, dtype=jnp.complex64))
def complex_numbers(z):
    return jnp.exp(1j * z), jnp.abs(z), jnp.angle(z), z * np.array([1 + 2j, 3j, 0], np.complex64)


@program(struct(4))
def special_functions(x):
    return jax.scipy.special.erf(x), jnp.tanh(x), jnp.sinh(x)


@program(struct(6, 4))
def batched(x):
    return jax.vmap(lambda row: jnp.outer(row, row).trace())(x), jax.vmap(jnp.convolve, (0, None))(
        x, jnp.array([1.0, 2.0])
    )


@program(struct(3))
def derivatives(x):
    f = lambda x: jnp.sum(jnp.sin(x) ** 3)
    return jax.hessian(f)(x), jax.jvp(f, (x,), (x,))


@program(struct(4, 4), struct(4))
def checkpointed(w, x):
    layer = jax.checkpoint(lambda x: jnp.tanh(w @ x))
    return jax.grad(lambda x: layer(layer(x)).sum())(x)


@program(struct(2, 5), struct(5, 3))
def precise_products(a, b):
    exact = jnp.matmul(a, b, precision=lax.Precision.HIGHEST)
    wide = lax.dot(
        a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    return exact, wide


@program(struct(4, 6))
def top_values(x):
    return lax.top_k(x, 3), jnp.flip(x, 1), jnp.pad(x, 1), jnp.roll(x, 2, 0), x.reshape(-1, 3)


@program(struct(5, 2), struct(5, 2))
def distances(a, b):
    squared = jnp.sum((a[:, None] - b[None]) ** 2, -1)
    return jnp.sqrt(jnp.clip(squared, 1e-12)), lax.map(jnp.sum, a)


@program(struct(8))
def prefix_sums(x):
    return lax.associative_scan(jnp.add, x), lax.cummax(x), lax.cumlogsumexp(x, reverse=True)


@program(struct(3), struct(3))
def batched_loop(x, limits):
    def power(x, limit):
        return lax.while_loop(lambda s: s[1] < limit, lambda s: (s[0] * x, s[1] + x), (x, 0.0))

    return jax.vmap(power)(jnp.abs(x) + 1, limits)
