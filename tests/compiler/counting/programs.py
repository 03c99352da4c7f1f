"""Programs that are counted: loops, conditionals, sorts, callbacks, donation, and what is in
between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Program:
    """A function, what it is called with, and options of `jax.jit`."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    callback: bool = False


def ramp(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Numbers from -1 to 1, or from 0 up."""
    size = int(np.prod(shape))
    if np.dtype(dtype).kind in "iub":
        return (np.arange(size) * 7919 % 251).reshape(shape).astype(dtype)
    return (np.sin(np.arange(size) * 1.7).reshape(shape)).astype(dtype)


def programs() -> Iterator[Program]:
    """All of them."""
    yield from elementwise()
    yield from loops()
    yield from unknown_loops()
    yield from conditionals()
    yield from sorts()
    yield from libraries()
    yield from callbacks()
    yield from donations()


def elementwise() -> Iterator[Program]:
    x = ramp(512, 8)
    functions: dict[str, Callable[..., Any]] = {
        "sine": jnp.sin,
        "softmax": jax.nn.softmax,
        "mean_and_variance": lambda v: (v.mean(), v.var()),
        "normalized": lambda v: (v - v.mean(0)) / jnp.sqrt(v.var(0) + 1e-5),
        "cumulative": lambda v: jnp.cumsum(v, axis=0),
        "transposed": lambda v: jnp.sin(v.T).reshape(-1),
        "two_results": lambda v: (v + 1, v.sum()),
        "stacked": lambda v: jnp.stack([v, v * 2, v[::-1]]),
        "padded": lambda v: jnp.pad(v, 3) * 2,
        "gathered": lambda v: v[jnp.array([5, 3, 1])] + 1,
        "scattered": lambda v: v.at[jnp.array([5, 3, 5])].add(1.0),
        "updated": lambda v: lax.dynamic_update_slice(v, v[:2] * 3, (7, 0)),
        "argmax": lambda v: jnp.argmax(v, axis=1),
        "identity": lambda v: v,
        "identity_and_sum": lambda v: (v, v, v.sum()),
        "constant": lambda v: (jnp.ones((64, 64)), v[0, 0]),
        "complex": lambda v: jnp.abs(v + 1j * v),
        "gradient": jax.grad(lambda v: jnp.sum(jnp.tanh(v @ v.T))),
        "barrier": lambda v: lax.optimization_barrier(jnp.sin(v)) * 2,
        "integers": lambda v: (v > 0).sum(0) // 3,
        "log_sum_exp": lambda v: jax.nn.logsumexp(v, axis=1),
        "windows": lambda v: lax.reduce_window(v, 0.0, lax.add, (4, 2), (2, 2), "VALID"),
    }
    for name, function in functions.items():
        yield Program(name, function, (x,))


def loops() -> Iterator[Program]:
    x = ramp(256)
    for trips in (1, 2, 7, 100):
        yield Program(
            f"fori_{trips}",
            lambda v, n=trips: lax.fori_loop(0, n, lambda i, u: _fft(u) + i, v),
            (x,),
        )
        yield Program(
            f"scan_{trips}",
            lambda v, n=trips: lax.scan(
                lambda c, t: (_fft(c + t), c.sum()), v, jnp.arange(float(n))
            ),
            (x,),
        )
    for unroll in (2, 5):
        yield Program(
            f"scan_unrolled_{unroll}",
            lambda v, n=unroll: lax.scan(
                lambda c, t: (_fft(c * t), c[0]), v, jnp.arange(10.0), unroll=n
            ),
            (x,),
        )
    for outer, inner in ((3, 5), (10, 1), (4, 9)):
        yield Program(
            f"nested_{outer}_{inner}",
            lambda v, n=outer, m=inner: lax.fori_loop(
                0, n, lambda i, u: lax.fori_loop(0, m, lambda j, w: _fft(w), jnp.cumsum(u)), v
            ),
            (x,),
        )
    yield Program("triple", lambda v: _nest(v, 3), (x,))
    yield Program("one_after_another", lambda v: _iterate(_iterate(v, 3), 5), (x,))
    yield Program("map", lambda v: lax.map(lambda row: _fft(row).sum(), v), (ramp(20, 64),))
    yield Program(
        "scan_of_rows",
        lambda v: lax.scan(lambda c, row: (c + row, row.max()), v[0], v),
        (ramp(30, 64),),
    )
    yield Program(
        "scan_reversed",
        lambda v: lax.scan(lambda c, row: (_fft(c + row), c), v[0], v, reverse=True),
        (ramp(12, 64),),
    )
    yield Program(
        "backward_scan",
        jax.grad(
            lambda v: lax.scan(lambda c, row: (jnp.tanh(c @ c) + row, None), v[0], v)[0].sum()
        ),
        (ramp(6, 16, 16),),
    )
    yield Program("associative", lambda v: lax.associative_scan(jnp.multiply, v), (x,))
    yield Program(
        "loop_of_matmuls", lambda v: lax.fori_loop(0, 6, lambda i, u: u @ v, v), (ramp(64, 64),)
    )
    yield Program(
        "loop_of_sums", lambda v: lax.fori_loop(0, 9, lambda i, u: u + v.sum() * u.sum(), v), (x,)
    )
    yield Program(
        "loop_with_a_table",
        lambda v: lax.fori_loop(0, 8, lambda i, c: c.at[i].set(_fft(v)[i]), jnp.zeros(8)),
        (x,),
    )
    yield Program(
        "carry_exchanged",
        lambda v: lax.fori_loop(0, 11, lambda i, c: (c[1], _fft(c[0])), (v, v + 1)),
        (x,),
    )
    yield Program(
        "checkpointed",
        jax.grad(lambda v: _iterate_scan(jax.checkpoint(lambda u: jnp.sin(_fft(u))), v, 4).sum()),
        (x,),
    )


def unknown_loops() -> Iterator[Program]:
    x = ramp(256)
    yield Program(
        "while_of_a_sum",
        lambda v: lax.while_loop(lambda u: u.sum() < 30, lambda u: u + 1.5, v),
        (x,),
    )
    yield Program(
        "while_of_two",
        lambda v: lax.while_loop(
            lambda c: c[0] < c[1].max() * 4, lambda c: (c[0] + 1, _fft(c[1]) / 16), (0.0, v)
        ),
        (x,),
    )
    yield Program(
        "fori_of_an_argument",
        lambda n, v: lax.fori_loop(0, n, lambda i, u: _fft(u) / 16, v),
        (5, x),
    )
    yield Program(
        "known_in_unknown",
        lambda n, v: lax.fori_loop(0, n, lambda i, u: _iterate(u / 256, 3), v),
        (2, x),
    )
    yield Program(
        "unknown_in_known",
        lambda n, v: lax.fori_loop(
            0, 4, lambda i, u: lax.fori_loop(0, n, lambda j, w: _fft(w) / 16, u), v
        ),
        (3, x),
    )
    yield Program(
        "newton",
        lambda v: lax.while_loop(
            lambda c: (jnp.abs(c[0] * c[0] - v).max() > 1e-3) & (c[1] < 50),
            lambda c: (0.5 * (c[0] + v / c[0]), c[1] + 1),
            (v, 0),
        ),
        (np.abs(x) + 1,),
    )
    yield Program("never", lambda v: lax.while_loop(lambda u: u.sum() > 1e9, _fft, v), (x,))


def conditionals() -> Iterator[Program]:
    x = ramp(256)
    yield Program("cond", lambda c, v: lax.cond(c, _fft, jnp.sin, v), (True, x))
    yield Program("cond_of_a_sum", lambda v: lax.cond(v.sum() > 0, _fft, jnp.cumsum, v), (x,))
    yield Program("cond_empty_arm", lambda c, v: lax.cond(c, _fft, lambda u: u, v), (False, x))
    for arms in (2, 3, 5):
        yield Program(
            f"switch_{arms}",
            lambda n, v, k=arms: lax.switch(n, [partial(_iterate_plain, n=i) for i in range(k)], v),
            (1, x),
        )
    yield Program(
        "cond_in_cond",
        lambda c, v: lax.cond(
            c, lambda u: lax.cond(u.sum() > 0, _fft, jnp.sin, u), lambda u: _fft(_fft(u)), v
        ),
        (True, x),
    )
    for trips in (4, 50):
        yield Program(
            f"cond_in_scan_{trips}",
            lambda v, n=trips: lax.scan(
                lambda c, t: (lax.cond(c.sum() > t, _fft, jnp.sin, c), None),
                v,
                jnp.arange(float(n)),
            ),
            (x,),
        )
    yield Program(
        "loop_in_cond",
        lambda c, v: lax.cond(c, lambda u: _iterate(u, 6), lambda u: _iterate(u, 2), v),
        (True, x),
    )
    yield Program(
        "loop_in_cond_in_loop",
        lambda v: lax.fori_loop(
            0, 5, lambda i, u: lax.cond(u.sum() > i, lambda w: _iterate(w, 3), _fft, u), v
        ),
        (x,),
    )
    yield Program(
        "unknown_loop_in_cond",
        lambda c, n, v: lax.cond(
            c, lambda u: lax.fori_loop(0, n, lambda i, w: _fft(w), u), jnp.sin, v
        ),
        (False, 3, x),
    )
    yield Program(
        "cond_after_cond",
        lambda c, v: lax.cond(~c, _fft, jnp.sin, lax.cond(c, _fft, jnp.cos, v)),
        (True, x),
    )
    yield Program(
        "gradient_of_cond",
        jax.grad(lambda v: lax.cond(v[0] > 0, lambda u: _fft(u), jnp.sin, v).sum()),
        (x,),
    )


def sorts() -> Iterator[Program]:
    for size in (2, 100, 4096, 5000, 20000):
        yield Program(f"sort_{size}", jnp.sort, (ramp(size),))
    for size in (300, 10000):
        yield Program(f"argsort_{size}", jnp.argsort, (ramp(size),))
    for dtype in ("float16", "int32", "uint8"):
        yield Program(f"sort_{dtype}", jnp.sort, (ramp(9000, dtype=dtype),))
    yield Program("sort_rows", lambda v: jnp.sort(v, axis=1), (ramp(8, 6000),))
    yield Program("sort_columns", lambda v: jnp.sort(v, axis=0), (ramp(3000, 4),))
    yield Program("sort_of_sines", lambda v: jnp.sort(jnp.sin(v)), (ramp(6000),))
    yield Program("sort_and_operand", lambda v: (jnp.sort(v), v + 1), (ramp(6000),))
    yield Program("sort_twice", lambda v: jnp.sort(jnp.sin(jnp.sort(v))), (ramp(5000),))
    yield Program(
        "lexicographic", lambda a, b: lax.sort((a, b), num_keys=2), (ramp(5000), ramp(5000))
    )
    yield Program(
        "three_operands",
        lambda a, b: lax.sort((a, b, a * b), num_keys=1, is_stable=False),
        (ramp(5000), ramp(5000)),
    )
    yield Program("median", lambda v: jnp.median(v, axis=1), (ramp(16, 5000),))
    yield Program("unique", lambda v: jnp.unique(v, size=16), (ramp(4500, dtype="int32"),))
    yield Program("top_k", lambda v: lax.top_k(v, 5), (ramp(16, 1000),))
    yield Program("top_k_wide", lambda v: lax.top_k(v, 64), (ramp(2, 5000),))
    yield Program(
        "sort_in_loop",
        lambda v: lax.fori_loop(0, 3, lambda i, u: jnp.sort(jnp.sin(u)), v),
        (ramp(5000),),
    )
    yield Program(
        "sort_in_scan",
        lambda v: lax.scan(lambda c, t: (jnp.sort(c + t), c[0]), v, jnp.arange(7.0)),
        (ramp(2048),),
    )
    yield Program(
        "sort_in_cond", lambda c, v: lax.cond(c, jnp.sort, jnp.sin, v), (True, ramp(5000))
    )
    yield Program("search", lambda v: jnp.searchsorted(v, v[:7]), (ramp(2000),))
    yield Program("permuted", lambda v: jax.random.permutation(jax.random.key(0), v), (ramp(700),))


def libraries() -> Iterator[Program]:
    a = ramp(48, 48) + 50 * np.eye(48, dtype="float32")
    yield Program("matmul", lambda v: v @ v, (a,))
    yield Program("batched_matmul", lambda v: jnp.einsum("bij,bjk->bik", v, v), (ramp(6, 40, 40),))
    yield Program("matmul_and_more", lambda v: jax.nn.relu(v @ v + 1) @ v[0], (a,))
    yield Program("cholesky", lambda v: jnp.linalg.cholesky(v @ v.T), (a,))
    yield Program(
        "triangular", lambda v: jax.scipy.linalg.solve_triangular(v, v[0], lower=True), (a,)
    )
    yield Program("qr", jnp.linalg.qr, (ramp(24, 8),))
    yield Program("solve", lambda v: jnp.linalg.solve(v, v[0]), (a,))
    yield Program("eigenvalues", jnp.linalg.eigvalsh, (ramp(16, 16),))
    yield Program("fft_3d", lambda v: jnp.fft.fftn(v).real, (ramp(8, 16, 8),))
    yield Program("fft_leading", lambda v: jnp.fft.fft(v, axis=0).real, (ramp(64, 8),))
    yield Program("rfft", lambda v: jnp.abs(jnp.fft.rfft(v)), (ramp(128),))
    yield Program(
        "conv", lambda v: lax.conv(v, v[:2, :, :3, :3], (1, 1), "SAME"), (ramp(2, 4, 16, 16),)
    )
    yield Program("random", lambda: jax.random.normal(jax.random.key(3), (1000,)), ())
    yield Program(
        "random_in_loop",
        lambda k: lax.fori_loop(
            0,
            4,
            lambda i, c: (jax.random.split(c[0])[0], c[1] + jax.random.normal(c[0], (99,))),
            (k, jnp.zeros(99)),
        )[1],
        (np.array([1, 2], "uint32"),),
    )
    yield Program("attention", _attention, (ramp(2, 32, 2, 16),))
    yield Program("mlp_gradient", jax.grad(_mlp), (ramp(32, 32), ramp(64, 32)))


def callbacks() -> Iterator[Program]:
    x = ramp(256)
    yield Program(
        "pure_callback",
        lambda v: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(v.shape, v.dtype), v + 1) * 2,
        (x,),
        callback=True,
    )
    yield Program("debug_print", _printing, (x,), callback=True)
    yield Program(
        "callback_in_loop",
        lambda v: lax.fori_loop(
            0,
            3,
            lambda i, u: jax.pure_callback(np.cos, jax.ShapeDtypeStruct(u.shape, u.dtype), u),
            v,
        ),
        (x,),
        callback=True,
    )


def donations() -> Iterator[Program]:
    donated = {"donate_argnums": (0,)}
    x = ramp(6000)
    yield Program("donated", lambda v: v * 2, (x,), donated)
    yield Program("donated_sort", lambda v: jnp.sort(v), (x,), donated)
    yield Program("donated_update", lambda v: v.at[3].set(1.0), (x,), donated)
    yield Program(
        "donated_loop", lambda v: lax.fori_loop(0, 5, lambda i, u: _fft(u), v), (x[:256],), donated
    )
    yield Program(
        "donated_state",
        lambda s: {"w": s["w"] - 0.1 * s["g"], "g": s["g"] * 0.9, "n": s["n"] + 1},
        ({"w": x, "g": x, "n": 3},),
        donated,
    )
    yield Program("donated_unused", lambda v: v.sum(), (x,), donated)
    for name, function in (("kept_sort", jnp.sort), ("kept_update", lambda v: v.at[3].set(1.0))):
        yield Program(name, function, (x,))


def _fft(x: jax.Array) -> jax.Array:
    return jnp.fft.fft(x).real


def _iterate(x: jax.Array, n: int) -> jax.Array:
    return lax.fori_loop(0, n, lambda i, u: _fft(u), x)


def _iterate_plain(x: jax.Array, n: int) -> jax.Array:
    for _ in range(n):
        x = _fft(x) + jnp.cumsum(x)
    return x * 2


def _iterate_scan(f: Callable[[jax.Array], jax.Array], x: jax.Array, n: int) -> jax.Array:
    return lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0]


def _nest(x: jax.Array, depth: int) -> jax.Array:
    if depth == 0:
        return _fft(x)
    return lax.fori_loop(0, depth + 1, lambda i, u: _nest(jnp.sin(u), depth - 1), x)


def _attention(x: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", x, x))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, x)


def _mlp(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(jax.nn.gelu(jax.nn.gelu(x @ w) @ w) ** 2)


def _printing(x: jax.Array) -> jax.Array:
    jax.debug.print("sum {}", x.sum())
    return jnp.sin(x)
