"""Measured operations whose times on an H100 were measured: what the model's rates come from.

`/` separates a group from its case, as in `calibration_h100.json`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.compiler.measured import Function, Measured


def _chain(operation: Function) -> Function:
    def chained(x: Any) -> Any:
        for _ in range(8):
            x = operation(x)
        return x

    return chained


def _copies() -> dict[str, Measured]:
    return {
        f"copy f32 x+1/2^{power}": Measured(lambda x: x + 1, (f"f32[{2**power}]",))
        for power in (0, 10, 14, 16, 18, 20, 22, 24, 26, 28)
    }


_ELEMENTWISE: dict[str, Function] = {
    "add": lambda x: x + 1.5,
    "mul": lambda x: x * 1.01,
    "div": lambda x: x / 1.01,
    "exp": jnp.exp,
    "log": lambda x: jnp.log(x) + 2,
    "log1p": jnp.log1p,
    "expm1": jnp.expm1,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "sqrt": jnp.sqrt,
    "erf": lax.erf,
    "erf_inv": lax.erf_inv,
    "logistic": jax.nn.sigmoid,
    "atan2": lambda x: jnp.arctan2(x, 0.5),
    "lgamma": lax.lgamma,
    "gelu": jax.nn.gelu,
}


def _sorts() -> dict[str, Measured]:
    shapes = ("65536x64", "16384x256", "4096x1024", "4096x4096", "64x65536", "8x1048576")
    rows = {
        f"sort f32 rows/{shape}": Measured(jnp.sort, (f"f32[{shape.replace('x', ',')}]",))
        for shape in shapes
    }
    long = {
        f"argsort f32/2^{power}": Measured(jnp.argsort, (f"f32[{2**power}]",))
        for power in (12, 16, 20, 24)
    }
    million = "f32[1048576]"
    top = ((512, 50257, 40), (64, 50257, 1), (1, 1048576, 10), (4096, 1024, 8))
    return {
        **rows,
        "sort f32 columns/4096x1024 axis 0": Measured(
            lambda x: jnp.sort(x, axis=0), ("f32[4096,1024]",)
        ),
        **long,
        "argsort f32 unstable/2^20": Measured(lambda x: jnp.argsort(x, stable=False), (million,)),
        "sort two keys/2^20": Measured(
            lambda x, y: lax.sort((x, y), num_keys=2), (million, "i32[1048576]")
        ),
        "sort descending/2^20": Measured(lambda x: jnp.sort(x, descending=True), (million,)),
        **{
            f"top_k/{rows}x{length} k={k}": Measured(
                lambda x, k=k: lax.top_k(x, k), (f"f32[{rows},{length}]",)
            )
            for rows, length, k in top
        },
    }


def _segments(rows: int, width: int, targets: int) -> Measured:
    types = (f"f32[{rows},{width}]" if width > 1 else f"f32[{rows}]", f"i32[{rows}]")
    return Measured(lambda u, i: jax.ops.segment_sum(u, i, num_segments=targets), types)


def _indexed() -> dict[str, Measured]:
    table = ("f32[100000,128]", "i32[65536]", "f32[65536,128]")
    random = (
        (1000000, 1, 50000), (1000000, 16, 50000), (65536, 128, 100000), (1000000, 16, 8),
        (1000000, 1, 8),
    )  # fmt: skip
    gathers = (("1000000 of width", 1), ("1000000 of width", 8), ("1000000 of width", 32),
               ("1000000 of width", 128), ("65536 of width", 1024))  # fmt: skip
    return {
        **{
            f"segment_sum random indices/{rows}x{width} -> {targets}": _segments(
                rows, width, targets
            )
            for rows, width, targets in random
        },
        "segment_sum sorted/1000000x16 -> 50000": Measured(
            lambda u, i: jax.ops.segment_sum(u, i, num_segments=50000, indices_are_sorted=True),
            ("f32[1000000,16]", "i32[1000000]"),
        ),
        "scatter set/65536x128 -> 100000": Measured(lambda t, i, u: t.at[i].set(u), table),
        "scatter add bf16/65536x128 -> 100000": Measured(
            lambda t, i, u: t.at[i].add(u), ("bf16[100000,128]", "i32[65536]", "bf16[65536,128]")
        ),
        "scatter max/1000000 -> 50000": Measured(
            lambda t, i, u: t.at[i].max(u), ("f32[50000]", "i32[1000000]", "f32[1000000]")
        ),
        **{
            f"gather rows/{words} {width}": Measured(
                lambda t, i: t[i],
                (f"f32[100000,{width}]" if width > 1 else "f32[100000]", f"i32[{words.split()[0]}]"),
            )
            for words, width in gathers
        },
        **{
            f"cumsum 1-d/2^{power}": Measured(jnp.cumsum, (f"f32[{2**power}]",))
            for power in (10, 16, 20, 24)
        },
        "cumsum rows/8192x4096": Measured(lambda x: jnp.cumsum(x, 1), ("f32[8192,4096]",)),
        "cumsum columns/4096x8192": Measured(lambda x: jnp.cumsum(x, 0), ("f32[4096,8192]",)),
        "argmax rows/8192x8192": Measured(lambda x: jnp.argmax(x, 1), ("f32[8192,8192]",)),
    }  # fmt: skip


def _random() -> dict[str, Measured]:
    count = 2**24
    draws: dict[str, tuple[Function, tuple[str, ...]]] = {
        "bits": (lambda key: jax.random.bits(key, (count,)), ()),
        "uniform": (lambda key: jax.random.uniform(key, (count,)), ()),
        "normal": (lambda key: jax.random.normal(key, (count,)), ()),
        "permutation": (lambda key: jax.random.permutation(key, 2**20), ()),
        "categorical": (lambda key, x: jax.random.categorical(key, x), ("f32[64,50257]",)),
    }
    return {
        f"random {name}/{draw}": Measured(function, (f"key<{short}>[]", *types))
        for draw, (function, types) in draws.items()
        for name, short in (("threefry2x32", "fry"), ("rbg", "rbg"))
    }


def _matmul(m: int, k: int, n: int, dtype: str) -> Measured:
    return Measured(jnp.matmul, (f"{dtype}[{m},{k}]", f"{dtype}[{k},{n}]"))


def _products() -> dict[str, Measured]:
    thin = (
        (1, 4096, 4096),
        (16, 4096, 4096),
        (128, 4096, 4096),
        (4096, 64, 4096),
        (4096, 4096, 16),
    )
    return {
        **{
            f"matmul {long}/{size}": _matmul(size, size, size, short)
            for long, short in (("bfloat16", "bf16"), ("float32", "f32"))
            for size in (256, 512, 1024, 2048, 4096, 8192)
        },
        "matmul float16/4096": _matmul(4096, 4096, 4096, "f16"),
        **{f"matmul bf16/{m}x{k}x{n}": _matmul(m, k, n, "bf16") for m, k, n in thin},
    }  # fmt: skip


def _conv(dtype: str, image: str, kernel: str) -> Measured:
    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return Measured(convolve, (f"{dtype}[{image}]", f"{dtype}[{kernel}]"))


def _others() -> dict[str, Measured]:
    fft = {
        f"fft c64 last axis/{case}": Measured(jnp.fft.fft, (f"c64[{case.replace('x', ',')}]",))
        for case in ("1048576", "1024x1024", "4096x4096", "1000x1000", "997x1024", "8x262144")
    }
    linear = {
        f"{name} f32/{size}": Measured(getattr(jnp.linalg, name), (f"f32[{size},{size}]",))
        for name in ("eigh", "qr", "svd")
        for size in (64, 256, 1024)
        if (name, size) != ("svd", 1024)
    }

    def positive(a: Any) -> Any:
        return jnp.linalg.cholesky(a @ a.mT + 100 * jnp.eye(a.shape[-1]))

    def loop(turns: int) -> Measured:
        return Measured(
            lambda x: lax.fori_loop(0, turns, lambda i, x: x * 1.001 + i, x), ("f32[1024]",)
        )

    def until(x: Any) -> Any:
        return lax.while_loop(lambda x: x.sum() < 1e6, lambda x: x * 1.1, x)

    def scan(w: Any, x: Any) -> Any:
        return lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=100)[0]

    def reductions(x: Any) -> Any:
        for _ in range(20):
            x = x - x.mean(1, keepdims=True)
        return x

    return {
        "conv NHWC float32/64,56,56,64->64 k3": _conv("f32", "64,56,56,64", "3,3,64,64"),
        "conv NHWC bfloat16/64,56,56,64->64 k3": _conv("bf16", "64,56,56,64", "3,3,64,64"),
        "conv NHWC float32/64,14,14,256->256 k3": _conv("f32", "64,14,14,256", "3,3,256,256"),
        "conv NHWC bfloat16/64,56,56,64->256 k1": _conv("bf16", "64,56,56,64", "1,1,64,256"),
        "conv NHWC float32/64,224,224,3->64 k7": _conv("f32", "64,224,224,3", "7,7,3,64"),
        **fft,
        "fft3 c64/256^3": Measured(jnp.fft.fftn, ("c64[256,256,256]",)),
        "rfft3 f32/256^3": Measured(jnp.fft.rfftn, ("f32[256,256,256]",)),
        "rfft3 f32/64^3": Measured(jnp.fft.rfftn, ("f32[64,64,64]",)),
        **linear,
        "eigh f32 batched/1024x16x16": Measured(jnp.linalg.eigh, ("f32[1024,16,16]",)),
        "cholesky f32 batched/1024x16x16": Measured(positive, ("f32[1024,16,16]",)),
        **{
            f"fori_loop of one small kernel (1024 f32)/{turns}": loop(turns)
            for turns in (10, 100, 1000)
        },
        "while of unknown length, 100 turns/1024": Measured(until, ("f32[1024]",)),
        "scan of matmul 64x256/100": Measured(scan, ("f32[256,256]", "f32[64,256]")),
        "chain of 20 reductions/1024x1024": Measured(reductions, ("f32[1024,1024]",)),
        "cholesky f32/2048": Measured(positive, ("f32[2048,2048]",)),
        "solve f32/2048": Measured(jnp.linalg.solve, ("f32[2048,2048]", "f32[2048,2048]")),
    }


SINGLES: dict[str, Measured] = {
    **_copies(),
    **{
        f"elementwise f32 2^24, 8 in a chain/{name}": Measured(
            _chain(operation), ("f32[16777216]",)
        )
        for name, operation in _ELEMENTWISE.items()
    },
    **_sorts(),
    **_indexed(),
    **_random(),
    **_products(),
    **_others(),
}
"""Their texts were not kept: they are written after the names of the measurements."""
