"""Gradients in the pretty style, as people would write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from inline_snapshot import snapshot
from jax import lax
from jax.extend.core import primitives
from jax.interpreters import ad

import jaxsight
from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import load
from tests.corpora.jaxsight_source.programs.registry import Call
from tests.jaxsight_source.gate import check


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


def test_values_that_nobody_reads_are_not_passed_through_calls():
    assert body(jax.grad(lambda x: jnp.trace(x) ** 2), f32(3, 3)) == snapshot("""\
@jax.jit
def trace(x):
    eye = jnp.eye(3, dtype=jnp.bool_)
    chosen = jnp.where(eye, x, jnp.zeros((3, 3)))
    return jnp.sum(chosen), eye


@jax.jit
def where(x, x_1):
    return lax.select(x, x_1, jnp.zeros((3, 3)))


@jax.jit
def trace_1(x, x_1):
    return where(x, jnp.broadcast_to(x_1, (3, 3)))


def function(x):
    trace_out, trace_out_1 = trace(x)
    return trace_1(trace_out_1, 1.0 * (2.0 * trace_out))
""")


def test_calls_of_one_function_return_what_any_of_them_reads():
    @jax.jit
    def inner(x):
        return jnp.sin(x), jnp.exp(x)

    def loss(x):
        return inner(x)[0] + inner(x * 2)[1]

    assert body(jax.grad(loss), f32()) == snapshot("""\
@jax.jit
def inner(x):
    cos = jnp.cos(x)
    return jnp.exp(x), cos


@jax.jit
def inner_1(x, x_1):
    return x_1 * x


def loss(x):
    _, inner_out = inner(x)
    inner_out_1, _ = inner(x * 2.0)
    mul_1 = inner_1(inner_out_1, np.float32(1.0)) * 2.0
    return mul_1 + inner_1(inner_out, np.float32(1.0))
""")


def test_functions_of_the_user_keep_their_arguments_and_results():
    @jax.jit
    def both(x, unread):
        return jnp.sin(x), jnp.cos(x)

    assert body(lambda x: both(x, x + 1)[0] * 2, f32()) == snapshot("""\
@jax.jit
def both(x, unread):
    return jnp.sin(x), jnp.cos(x)


def function(x):
    both_out, _ = both(x, x + 1.0)
    return both_out * 2.0
""")


def test_choices_of_a_gradient_are_conditions():
    def loss(x, y):
        def inner(x):
            return lax.cond(y > 1, lambda x: jnp.sin(x) * y, lambda x: x * x, x)

        return lax.cond(x > 0, inner, jnp.exp, x)

    written = body(jax.grad(loss, (0, 1)), f32(), f32())
    assert written.count("lax.cond(") == 4
    if jax.__version_info__ < (0, 12):  # whose first choice returns further values
        return
    assert written == snapshot("""\
def loss(x, y):
    greater = x > 0.0

    def if_false(x_1, x_2):
        return jnp.exp(x_2), np.float32(0.0), np.bool_(False)

    def if_true(x_1, x_2):
        greater_1 = x_1 > 1.0

        def if_false_1(x_3):
            return np.float32(0.0), np.float32(0.0)

        def if_true(x_3):
            sin = jnp.sin(x_3)
            return jnp.cos(x_3), sin

        return (*lax.cond(greater_1, if_true, if_false_1, x_2), greater_1)

    *rest_1, branch_2 = lax.cond(greater, if_true, if_false, y, x)

    def if_false_1(x_1, x_2, x_3, x_4, x_5, x_6):
        mul = x_5 * x_1
        return np.float32(0.0), mul

    def if_true_1(x_1, x_2, x_3, x_4, x_5, x_6):
        def if_false_2(x_7, x_8, x_9, x_10, x_11):
            add = x_9 * x_11 + x_11 * x_9
            return np.float32(0.0), add

        def if_true_1(x_7, x_8, x_9, x_10, x_11):
            return x_8 * x_11, x_11 * x_10 * x_7

        return lax.cond(x_6, if_true_1, if_false_2, x_1, x_2, x_3, x_4, x_5)

    branch_3, branch_4 = lax.cond(
        greater, if_true_1, if_false_1, *rest_1, x, y, np.float32(1.0), branch_2
    )
    return branch_4, branch_3
""")


def test_choices_among_several_are_switches():
    def loss(i, x):
        return lax.switch(i, [jnp.sin, jnp.exp, lambda x: x * 2], x)

    i = jax.ShapeDtypeStruct((), jnp.int32)
    assert body(jax.grad(loss, 1), i, f32()) == snapshot("""\
def loss(i, x):
    def branch_0(x_1):
        return jnp.cos(x_1)

    def branch_1(x_1):
        return jnp.exp(x_1)

    def branch_2(x_1):
        return np.float32(0.0)

    branch = lax.switch(i, [branch_0, branch_1, branch_2], x)

    def branch_0_1(x_1, x_2):
        return x_2 * x_1

    def branch_1_1(x_1, x_2):
        return x_2 * x_1

    def branch_2_1(x_1, x_2):
        return x_2 * 2.0

    return lax.switch(i, [branch_0_1, branch_1_1, branch_2_1], branch, np.float32(1.0))
""")


def test_arrays_that_one_branch_does_not_compute_are_zeros():
    def loss(x):
        return lax.cond(x[0] > 0, lambda x: jnp.sin(x).sum(), lambda x: x[1], x)

    assert body(jax.grad(loss), f32(3)) == snapshot("""\
def loss(x):
    greater = x[0] > 0.0
    branch = lax.cond(greater, lambda x_1: jnp.cos(x_1), lambda x_1: jnp.zeros(3), x)

    def if_false_1(x_1, x_2):
        return lax.pad(x_2[None], 0.0, ((1, 1, 0),))

    def if_true_1(x_1, x_2):
        return jnp.broadcast_to(x_2, (3,)) * x_1

    return lax.cond(greater, if_true_1, if_false_1, branch, np.float32(1.0))
""")


@pytest.mark.parametrize("x", [-0.5, 0.5])
@pytest.mark.parametrize("y", [0.5, 1.5])
def test_gradients_of_choices_have_the_values_of_the_original(x, y):
    def loss(x, y):
        def inner(x):
            return lax.cond(y > 1, lambda x: jnp.sin(x) * y, lambda x: x * x, x)

        return lax.fori_loop(0, 3, lambda _, x: lax.cond(x > 0, inner, jnp.exp, x), x)

    gradient = jax.grad(loss, (0, 1))
    written = load(write(gradient, (x, y), {}, SourceOptions("pretty", run=False)))
    assert jax.jit(written)(x, y) == jax.jit(gradient)(x, y)


def test_choices_by_a_known_value_are_conditions():
    def chosen(x):
        return lax.cond(False, lambda x: x * 2, jnp.cos, x)

    for style in ("lax", "pretty"):
        assert "lax.cond(False, " in body(chosen, f32(), style=style)


def test_copies_of_numbers_need_no_primitive():
    def copied(x):
        return x + primitives.copy_p.bind(0.5), primitives.copy_p.bind(3)

    for style in ("lax", "pretty"):
        assert "primitives" not in jaxsight.sourcerize(copied, style=style)(f32(3))
