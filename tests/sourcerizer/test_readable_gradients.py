"""Gradients in the pretty style, as people would write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from inline_snapshot import snapshot
from jax.interpreters import ad

import jaxsight
from tests.sourcerizer.gate import check
from tests.sourcerizer.programs.registry import Call


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def body(function: Callable[..., Any], *args: Any, style: str = "pretty") -> str:
    """Return the text of a function's gradient after its imports."""
    check(Call(function, args, {}), style=style)
    text = jaxsight.sourcerize(function, style=style)(*args)
    return text.split("\n\n\n", 1)[1]


def test_sums_of_cotangents_are_additions():
    def loss(x):
        return jnp.sum(x * jnp.sin(x))

    assert body(jax.grad(loss), f32(3)) == snapshot("""\
def loss(x):
    sin = jnp.sin(x)
    cos = jnp.cos(x)
    ones = jnp.ones(3)
    mul = x * ones
    return ones * sin + mul * cos
""")
    assert body(jax.grad(loss), f32(3), style="lax") == snapshot("""\
def loss(x):
    sin = lax.sin(x)
    cos = lax.cos(x)
    broadcast = lax.full((3,), 1.0, jnp.float32)
    mul = lax.mul(x, broadcast)
    mul_1 = lax.mul(broadcast, sin)
    mul_2 = lax.mul(mul, cos)
    add = ad.add_jaxvals(mul_1, mul_2)
    return add
""")


def test_sums_of_cotangents_that_are_numbers_are_additions():
    assert body(jax.grad(lambda x: x + x), f32()) == snapshot("""\
def function(x):
    return lax.add(np.float32(1.0), np.float32(1.0))
""")


def test_a_sum_of_cotangents_is_an_addition_only_if_that_is_asked():
    expected = jax.make_jaxpr(lambda x, y: ad.add_jaxvals(x * 2, y))(f32(3), f32(3))
    for found, sums, same in (
        (lambda x, y: x * 2 + y, True, True),
        (lambda x, y: x * 2 + y, False, False),
        (lambda x, y: y + x * 2, True, False),
        (lambda x, y: x * 2 - y, True, False),
        (lambda x, y: x * 2 + y.astype(jnp.float32), True, True),
    ):
        difference = jaxsight.same_jaxpr(expected, jax.make_jaxpr(found)(f32(3), f32(3)), sums=sums)
        assert (difference is None) is same


def test_types_of_sums_are_compared():
    """`add_any` keeps the weak type of its first operand; an addition does not."""
    weak = jax.ShapeDtypeStruct((), jnp.float32, weak_type=True)
    expected, found = (
        jax.make_jaxpr(each)(weak, f32()) for each in (ad.add_jaxvals, lambda x, y: x + y)
    )
    assert jaxsight.same_jaxpr(expected, found, sums=True) is not None
    text = jaxsight.sourcerize(lambda x, y: ad.add_jaxvals(x, y), style="pretty", run=False)(
        weak, f32()
    )
    assert "ad.add_jaxvals(x, y)" in text
