"""Programs of every kind of control flow and call come out as the same program."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


def test_pytrees_come_in_and_go_out_as_they_were(round_trip):
    def layer(params, x, *, scale=2.0):
        h = x @ params["w"] + params["b"][0]
        return {"h": h * scale, "pair": Pair(h, x), "rest": (None, [h.sum()], ())}

    params = {"w": np.ones((4, 5), np.float32), "b": [np.zeros(5, np.float32), None]}
    written = round_trip(layer, params, X)
    assert "def layer(params, x, *, scale=2.0):" in written.text


def test_a_default_that_the_program_was_made_for_is_checked():
    from jaxsight_source.api import write
    from jaxsight_source.written import load

    def scaled(x, times=3):
        return x * times

    made = load(write(scaled, (X,), {}))
    with pytest.raises(ValueError, match="written for times = 3"):
        made(X, 4)


def test_static_arguments_of_jit_stay_arguments(round_trip):
    @functools.partial(jax.jit, static_argnames="axis")
    def total(x, axis):
        return x.sum(axis)

    written = round_trip(lambda x: total(x, axis=1), X)
    assert "@jax.jit" in written.text


def test_closed_over_arrays_become_constants(round_trip):
    table = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    large = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    written = round_trip(lambda x: (x * table) @ jnp.ones((4, 64)) + large, X)
    assert "_unpack(" in written.text


@pytest.mark.parametrize(
    "value",
    [-0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4028235e38, 0.1, 16777217.0],
)
def test_float_literals_keep_their_bits(round_trip, value):
    literal = np.float32(value)
    round_trip(lambda x: (lax.mul(x, literal), literal), X)


def test_a_nan_with_a_payload_keeps_it(round_trip):
    odd = np.uint32(0x7FC12345).view(np.float32)
    round_trip(lambda x: lax.max(x, odd), X, run=False)


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", "float16", "float8_e4m3fn", "int4", "uint4", "int8", "uint32", "complex64"],
)
def test_literals_of_all_dtypes(round_trip, dtype):
    number = np.asarray(3).astype(jnp.dtype(dtype))
    round_trip(lambda: (jnp.full((2,), number), number))


def test_results_may_be_literals_and_arguments(round_trip):
    round_trip(lambda x: (x, 1.0, np.float32(2), x, True), X)


def test_scan_in_all_its_forms(round_trip):
    def scans(x, c):
        first = lax.scan(lambda a, b: (a + b * x.sum(), (a, b * 2)), c, x)
        second = lax.scan(lambda a, _: (a * 2, None), c, None, length=3)
        third = lax.scan(lambda _, b: (None, b + c), None, x, reverse=True, unroll=2)
        fourth = lax.scan(lambda a, b: ((a[1], a[0] + 1, 0), b["y"]), (c, c, 5), {"y": x, "z": x})
        return first, second, third, fourth

    round_trip(scans, X, X[0])


def test_while_loops_capture_in_both_functions(round_trip):
    def loop(x):
        return lax.while_loop(
            lambda c: c[0] < x.sum() + 10, lambda c: (c[0] + x.max() + 1, c[1] * 2), (0.0, x)
        )

    round_trip(loop, X)


def test_choices_with_two_and_more_branches(round_trip):
    def choose(x):
        first = lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: x * 2, x)
        index = x.sum().astype(int)
        return first, lax.switch(index, [lambda: 1.0, lambda: x.sum(), lambda: 3.0])

    round_trip(choose, X)


def test_a_choice_that_vmap_left_without_clamp_is_bound(round_trip):
    def choose(i, x):
        return lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x)

    round_trip(jax.grad(lambda x: choose(jnp.int32(1), x).sum()), X)


def test_fori_loops(round_trip):
    round_trip(lambda x: lax.fori_loop(0, 5, lambda i, c: c * i + x, x), X)
    round_trip(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * i + x, x), 5, X)


def test_custom_rules_are_written_even_where_nothing_calls_them(round_trip):
    @jax.custom_vjp
    def times(x, y):
        return x * y

    times.defvjp(lambda x, y: (x * y, (x, jnp.sin(y))), lambda r, ct: (ct * r[1], None))

    @jax.custom_jvp
    def cubed(x, y):
        return x**3 + y

    @cubed.defjvp
    def cubed_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return cubed(x, y), 3 * x * x * dx + dy

    def uses(x):
        return times(x, x + 1).sum() + cubed(x, x).sum() + jax.nn.relu(x).sum()

    written = round_trip(uses, X)
    assert "times.defvjp(times_fwd, times_bwd)" in written.text
    assert "@cubed.defjvp" in written.text
    from jaxsight_source.written import load
    from tests.jaxsight_source.harnesses import bits

    assert bits(jax.grad(load(written))(X)) == bits(jax.grad(uses)(X))


@pytest.mark.parametrize(
    "policy",
    [
        None,
        jax.checkpoint_policies.dots_saveable,
        jax.checkpoint_policies.save_only_these_names("a", "b"),
    ],
)
def test_checkpoint_keeps_its_policy(round_trip, policy):
    def body(x):
        return jnp.sin(checkpoint_name(jnp.sin(x), "a"))

    def uses(x):
        return jax.checkpoint(body, policy=policy, prevent_cse=False)(x).sum()

    round_trip(uses, X)
    round_trip(jax.grad(uses), X)


def test_a_jitted_function_that_is_called_twice_is_written_once(round_trip):
    inner = jax.jit(lambda x: jnp.tanh(x) * 2)
    inner.__name__ = "inner"

    def twice(x):
        return inner(inner(x)) + jax.jit(lambda y: y, donate_argnums=0, keep_unused=True)(x)

    written = round_trip(twice, X)
    assert written.text.count("tanh(") == 1
    assert "donate_argnums=0" in written.text


def test_random_keys_typed_and_raw(round_trip):
    def draw(key, raw):
        a, b = jax.random.split(key)
        return jax.random.normal(a, (3,)), jax.random.bits(b, (2,)), jax.random.uniform(raw)

    round_trip(draw, jax.random.key(0), jax.random.PRNGKey(1))
    round_trip(lambda seed: jax.random.key(seed, impl="rbg"), 3)


def test_reductions_by_any_function_and_linear_solves(round_trip):
    def reduce(x):
        return lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[1], a[1] * b[0]), (1,))

    round_trip(reduce, X, run=False)
    matrix = np.eye(4, dtype=np.float32) * 2

    def solve(b):
        return lax.custom_linear_solve(
            lambda v: matrix @ v, b, lambda _, v: jnp.linalg.inv(matrix) @ v,
            transpose_solve=lambda _, v: jnp.linalg.inv(matrix).T @ v,
        )  # fmt: skip

    round_trip(solve, X[0])


def test_transformed_functions(round_trip):
    def f(w, x):
        return jnp.tanh(x @ w).sum()

    w = np.ones((4, 2), np.float32)
    round_trip(jax.value_and_grad(f), w, X)
    round_trip(jax.vmap(f, (None, 0)), w, X)
    round_trip(jax.jacfwd(f), w, X)
    round_trip(jax.jit(jax.hessian(f)), w, X)


def test_shapes_without_values_are_enough(round_trip):
    struct = jax.ShapeDtypeStruct((3, 4), jnp.bfloat16)
    round_trip(lambda x: x * 2 + 0.1, struct, run=False)


def test_a_hundred_nested_scans(round_trip):
    def nest(depth, x, y):
        if depth == 0:
            return jnp.sin(x) * y
        return lax.scan(lambda c, _: (nest(depth - 1, c, y), None), x + depth, None, length=1)[0]

    from jaxsight_source.jaxprs.base import room_for_nesting

    with room_for_nesting():
        round_trip(functools.partial(nest, 100), np.float32(1), np.float32(2), run=False)
