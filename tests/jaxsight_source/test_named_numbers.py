"""Numbers in the pretty style by the names that people use for them, if these have their bits."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from inline_snapshot import snapshot

import jaxsight

X = jax.ShapeDtypeStruct((3,), jnp.float32)


def text(function: Any, *args: Any, style: str = "pretty") -> str:
    return jaxsight.sourcerize(function, style=style)(*args).split("\n\n\n", 1)[1]


def test_constants_of_mathematics():
    def f(x):
        return 2 * jnp.pi * x + np.pi / 2 - jnp.e * jnp.sin(-np.pi * x)

    assert text(f, X) == snapshot("""\
def f(x):
    add = 2 * jnp.pi * x + jnp.pi / 2
    return add - jnp.e * jnp.sin(-jnp.pi * x)
""")


def test_the_plain_style_has_numbers():
    assert text(lambda x: jnp.pi * x, X, style="lax") == snapshot("""\
def function(x):
    mul = lax.mul(3.1415927, x)
    return mul
""")


def test_limits_of_dtypes():
    def f(x):
        return jnp.where(jnp.isfinite(x), x, jnp.finfo(jnp.float32).max) + jnp.finfo(x.dtype).eps

    assert text(f, X) == snapshot("""\
def f(x):
    chosen = jnp.where(jnp.isfinite(x), x, jnp.finfo(jnp.float32).max)
    return chosen + jnp.finfo(jnp.float32).eps
""")


def test_numbers_of_few_digits_are_not_named():
    half = jax.ShapeDtypeStruct((3,), jnp.float16)
    assert "pi" not in text(lambda x: jnp.pi * x, half)


def test_other_constants_stay_numbers():
    def f(x):
        return x * 0.37 + 0.25

    assert text(f, X) == snapshot("""\
def f(x):
    return x * 0.37 + 0.25
""")


def test_many_coefficients_are_listed_above_the_loop():
    def horner(x):
        r = jnp.zeros_like(x)
        for c in (2.75e-06, 2.48e-05, 0.000198, 0.00138, 0.00833, 0.0417, 0.1666, 0.5, 1.0):
            r = r * x + c
        return r

    source = jaxsight.sourcerize(horner, style="pretty")(X)
    assert source.split("\n\n\n", 1)[1] == snapshot("""\
def horner(x):
    r = jnp.zeros(3)
    values = (
        np.float32(2.75e-06), np.float32(2.48e-05), np.float32(0.000198),
        np.float32(0.00138), np.float32(0.00833), np.float32(0.0417),
        np.float32(0.1666), np.float32(0.5), np.float32(1.0)
    )  # fmt: skip
    for c in values:
        r = r * x + c
    return r
""")


def test_coefficients_of_a_loop_are_columns():
    def waves(x):
        total = jnp.zeros(3)
        for amplitude, rate in [(0.5, 1.25), (2.0, 0.3), (1.1, 0.9), (0.7, 0.2), (0.15, 0.35)]:
            total = total + amplitude * jnp.exp(-rate * x)
        return total

    assert text(waves, X) == snapshot("""\
def waves(x):
    total = jnp.zeros(3)
    for c, c_1 in zip(
        (
            np.float32(-1.25),
            np.float32(-0.3),
            np.float32(-0.9),
            np.float32(-0.2),
            np.float32(-0.35),
        ),
        (
            np.float32(0.5),
            np.float32(2.0),
            np.float32(1.1),
            np.float32(0.7),
            np.float32(0.15),
        ),
    ):
        total = total + c_1 * jnp.exp(c * x)
    return total
""")
