"""The pretty style writes what people write, and it is the same program."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight import sourcerize

# Computed by NumPy, as JAX would compile each operation whenever the file is collected.
x = jnp.asarray(np.linspace(-1.0, 2.0, 20, dtype=np.float32).reshape(4, 5))
v = jnp.asarray(np.arange(5, dtype=np.float32))
i = jnp.array([0, 2, 1])
half = jnp.asarray(np.asarray(x), jnp.bfloat16)
key = jax.random.key(0)
raw_key = jax.random.PRNGKey(0)


def returned(text: str) -> str:
    """What the last function of a module returns."""
    return re.findall(r"    return (.*)\n", text)[-1]


@pytest.mark.parametrize(
    ("function", "args", "line"),
    [
        (lambda x: -x * 2.0 + x**3, (x,), "-x * 2.0 + x**3"),
        (lambda x: (x > 0) & ~(x < 1), (x,), "(x > 0.0) & ~(x < 1.0)"),
        (lambda x: x.astype(jnp.float16), (x,), "x.astype(jnp.float16)"),
        (lambda x, v: x * v, (x, v), "x * v"),
        (lambda v: v[:, None] * v, (v,), "v[:, None] * v"),
        (lambda x: x @ x.T, (x,), "x @ x.T"),
        (lambda x: x[1:2, ::2], (x,), "x[1:2, ::2]"),
        (lambda x: x[0], (x,), "x[0]"),
        (lambda x: x[..., -1], (x,), "x[:, -1]"),
        (lambda x, i: x[i], (x, i), "x[i]"),
        (lambda x, i: x[:, i], (x, i), "x[:, i]"),
        (lambda x, i: x[i, i], (x, i), "x[i, i]"),
        (lambda x, i: x[i[0]], (x, i), "x[i[0]]"),
        (lambda x: x.at[0].set(1.0), (x,), "x.at[0].set(1.0)"),
        (lambda x, i: x.at[i].add(2.0), (x, i), "x.at[i].add(2.0)"),
        (lambda x: x.at[:, 1:3].multiply(2.0), (x,), "x.at[:, 1:3].multiply(2.0)"),
        (lambda x: x.reshape(2, 10), (x,), "x.reshape(2, 10)"),
        (lambda x: jnp.sum(x, 1, keepdims=True), (x,), "jnp.sum(x, axis=1, keepdims=True)"),
        (lambda x: x.mean((0, 1)), (x,), "jnp.mean(x)"),
        (lambda h: h.mean(-1), (half,), "jnp.mean(h, axis=1)"),
        (lambda x: jnp.var(x, -1), (x,), "jnp.var(x, axis=1)"),
        (lambda x: x.argmax(), (x,), "jnp.argmax(x)"),
        (lambda x: jnp.where(x > 0, x, 0), (x,), "jnp.where(x > 0.0, x, 0)"),
        (lambda x: jnp.clip(x, 0, 1), (x,), "jnp.clip(x, 0, 1)"),
        (lambda x: jnp.tril(x), (x,), "jnp.tril(x)"),
        (lambda x: jnp.roll(x, 1, 0), (x,), "jnp.roll(x, 1, axis=0)"),
        (lambda x: x // 2, (x,), "x // 2"),
        (lambda x: x % 2, (x,), "x % 2"),
        (lambda x: jnp.pad(x, 1), (x,), "jnp.pad(x, 1)"),
        (
            lambda x: jnp.pad(x, ((0, 0), (1, 2)), constant_values=3),
            (x,),
            "jnp.pad(x, ((0, 0), (1, 2)), constant_values=3)",
        ),
        (lambda x: jnp.pad(x, 1, mode="edge"), (x,), 'jnp.pad(x, 1, mode="edge")'),
        (lambda x: jnp.hstack([x, x]), (x,), "jnp.hstack([x, x])"),
        (lambda x: jnp.repeat(x, 2, 0), (x,), "jnp.repeat(x, 2, axis=0)"),
        (lambda x: jnp.tile(x, (2, 1)), (x,), "jnp.tile(x, (2, 1))"),
        (lambda x: jnp.isnan(x), (x,), "jnp.isnan(x)"),
        (lambda x: x != x.T.T, (x,), "x != x.T.T"),
        (
            lambda x: jax.nn.gelu(x, approximate=False),
            (x,),
            "jax.nn.gelu(x, approximate=False)",
        ),
        (lambda v, i: jax.ops.segment_sum(v[:3], i, 4), (v, i), "jax.ops.segment_sum(v[:3], i, 4)"),
        (
            lambda v: jnp.convolve(v, v, mode="same"),
            (v,),
            'jnp.convolve(v, v, mode="same")',
        ),
        (
            lambda x: lax.conv(x[None, None], x[None, None], (1, 1), "SAME"),
            (x,),
            'lax.conv(x[None, None], x[None, None], (1, 1), "SAME")',
        ),
        (
            lambda x: lax.dynamic_index_in_dim(x, 1, keepdims=False),
            (x,),
            "lax.dynamic_index_in_dim(x, 1, keepdims=False)",
        ),
        (
            lambda key: jax.random.bernoulli(key, 0.9, (3,)),
            (key,),
            "jax.random.bernoulli(key, 0.9, (3,))",
        ),
        (
            lambda x: lax.scan(lambda c, row: (c + row, jnp.sin(c)), x[0], x),
            (x,),
            "lax.scan(lambda c, row: (c + row, jnp.sin(c)), x[0], x)",
        ),
        (lambda x: jax.nn.softmax(x), (x,), "jax.nn.softmax(x)"),
        (lambda x: jax.nn.logsumexp(x, 0), (x,), "jax.nn.logsumexp(x, axis=0)"),
        (lambda x: jax.nn.relu(x), (x,), "jax.nn.relu(x)"),
        (lambda x: jax.nn.gelu(x), (x,), "jax.nn.gelu(x)"),
        (lambda i: jax.nn.one_hot(i, 4), (i,), "jax.nn.one_hot(i, 4)"),
        (lambda x: jnp.linalg.norm(x, axis=1), (x,), "jnp.linalg.norm(x, axis=1)"),
        (lambda k: jax.random.normal(k, (3,)), (key,), "jax.random.normal(k, (3,))"),
        (lambda k: jax.random.split(k, 3), (raw_key,), "jax.random.split(k, 3)"),
        (lambda k: jax.random.normal(k, (3,)), (raw_key,), "jax.random.normal(k, (3,))"),
        (lambda: jnp.eye(3), (), "jnp.eye(3)"),
        (lambda: jnp.full((2, 3), 0.5), (), "jnp.full((2, 3), 0.5)"),
        (lambda x: lax.map(lambda y: y * 2, x), (x,), "lax.map(lambda x_1: x_1 * 2.0, x)"),
        (
            lambda v: lax.fori_loop(0, 5, lambda i, c: c + i, v),
            (v,),
            "lax.fori_loop(0, 5, lambda i, c: c + i, v)",
        ),
        (
            lambda n, v: lax.fori_loop(0, n, lambda i, c: c * 2, v),
            (jnp.int32(3), v),
            "lax.fori_loop(0, n, lambda i, c: c * 2.0, v)",
        ),
    ],
)
def test_idioms(round_trip, function, args, line):
    assert returned(round_trip(function, *args, style="pretty").text) == line


def test_library_functions_leave_no_helpers_behind(round_trip):
    def layer(x):
        return jax.nn.silu((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True)))

    assert "@jax.jit" not in round_trip(layer, x, style="pretty").text


def test_functions_of_the_user_stay_functions_whatever_their_name(round_trip):
    @jax.jit
    def softmax(x):
        return x / x.sum()

    text = round_trip(lambda x: softmax(x), x, style="pretty").text
    assert "@jax.jit\ndef softmax(x):" in text
    assert "jax.nn.softmax" not in text


def test_an_einsum_that_transposes_is_one_call(round_trip):
    text = round_trip(
        lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b),
        jnp.ones((2, 3, 4, 5)),
        jnp.ones((2, 6, 4, 5)),
        style="pretty",
    ).text
    assert len(re.findall(r"jnp\.einsum\(", text)) == 1
    assert "transpose" not in text


def test_values_used_twice_keep_a_name(round_trip):
    text = round_trip(lambda x: (e := jnp.exp(x)) / e.sum(), x, style="pretty").text
    assert text.count("jnp.exp(") == 1


def test_moving_values_keeps_the_order_of_equations(round_trip):
    def ordered(x, y):
        first = jnp.sin(x)
        second = jnp.cos(y)
        return second - first, jnp.tan(first)

    round_trip(ordered, x, x, style="pretty")


def test_effects_stay_in_order(round_trip):
    def printing(x):
        y = x * 2
        jax.debug.print("{}", y)
        return jnp.sin(y)

    round_trip(printing, x, style="pretty", run=False)


def test_numpy_and_python_numbers_become_arrays_before_python_computes_with_them(round_trip):
    def power(base, exponent):
        return base**exponent

    numbers = np.array([-2.0, 3.0], np.float32)
    assert "base = jnp.asarray(base)" in round_trip(power, numbers, 0.5, style="pretty").text


def test_a_part_of_a_tuple_that_is_passed_on_whole_is_not_named(round_trip):
    @jax.jit
    def step(c, a, b):
        return c + a * b

    def loop(c, a, b):
        return lax.scan(lambda c, ab: (step(c, *ab), None), c, (a, b))[0]

    assert "step(c_1, *xs)" in round_trip(loop, v[0], v, v, style="pretty").text


@functools.partial(jax.checkpoint, prevent_cse=False)
def _layer(x, w):
    return jnp.sin(x @ w), None


def test_the_gradient_of_checkpointed_layers(round_trip):
    def loss(w, x):
        return lax.scan(_layer, x, w)[0].mean()

    round_trip(jax.value_and_grad(loss), jnp.ones((2, 5, 5)), x, style="pretty")


def test_a_convolution_names_its_dimensions(round_trip):
    def conv(x, kernel):
        return lax.conv_general_dilated(
            x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    written = round_trip(conv, jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4)), style="pretty")
    assert 'dimension_numbers=("NHWC", "HWIO", "NHWC")' in written.text


def test_numbers_that_the_function_closes_over_are_not_computed_by_python(round_trip):
    zero = jnp.asarray(0)

    def choose(x):
        return jnp.where(zero == 0, x, x * 2)

    assert "==" in round_trip(choose, x, style="pretty").text


def test_equal_calls_of_a_custom_derivative_with_other_static_arguments_differ(round_trip):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def scaled(x, factor):
        return jnp.sin(x)

    @scaled.defjvp
    def scaled_jvp(factor, primals, tangents):
        return jnp.sin(primals[0]), factor * tangents[0]

    written = round_trip(lambda x: scaled(x, 2.0) + scaled(x, 3.0), x, style="pretty")
    assert "2.0 * " in written.text
    assert "3.0 * " in written.text


def test_parts_of_arguments_with_long_paths_are_called_by_the_last_words():
    def updated(state):
        return state["optimizer_of_everything"][0]["running_averages"]["kernel"] * 2 + 1

    kernel = {"running_averages": {"kernel": np.ones(3, np.float32)}}
    text = sourcerize(updated, style="pretty")({"optimizer_of_everything": [kernel]})
    assert "running_averages_kernel * 2" in text


def test_look_ups_whose_indices_have_two_readers_share_their_dimension_numbers(round_trip):
    table = jnp.arange(32.0).reshape(8, 4)

    def loss(table, i):
        return (table[i] ** 2).sum() + jnp.take(table, i + 1, axis=0).sum()

    text = round_trip(jax.grad(loss), table, i, style="pretty").text
    assert text.count("lax.GatherDimensionNumbers(") == 1
    assert "_GATHER = lax.GatherDimensionNumbers((1,), (0,), (0,))\n" in text
    assert re.search(r"lax\.gather\(table, \w+, _GATHER, \(1, 4\), mode=\"\w+\"\)", text)
    assert re.search(r"lax\.scatter_add\(.*, _SCATTER, mode=\"\w+\"\)", text)


def test_extremes_convert_and_broadcast_their_operands(round_trip):
    def bounded(x, n):
        return jnp.minimum(n - 10, 90.0), jnp.maximum(x, x[0])

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    written = round_trip(bounded, x, np.int32(3), style="pretty")
    assert "return jnp.minimum(n - 10, 90.0), jnp.maximum(x, x[0])" in written.text
