"""Jitted functions come out as one function with its decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight_source.api import write
from jaxsight_source.written import Written, load

X = jnp.asarray(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))

RoundTrip = Callable[..., Written]


def defined(written: Written) -> list[str]:
    return [line for line in written.text.split("\n") if line.startswith("def ")]


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_jitted_function_is_one_function(round_trip: RoundTrip, style: str) -> None:
    @jax.jit
    def layer(params: Any, x: Any) -> Any:
        h = x @ params["w"]
        return {"h": h, "x": x, "one": 1.0}

    written = round_trip(layer, {"w": jnp.ones((3, 4))}, X, style=style)
    assert "@jax.jit\ndef layer(params, x):" in written.text
    assert len(defined(written)) == 1


def test_static_and_donated_arguments_are_told_to_the_decorator(round_trip: RoundTrip) -> None:
    @functools.partial(jax.jit, static_argnames=("axis", "mode"), donate_argnums=0)
    def total(state: Any, x: Any, axis: int, *, mode: str = "sum") -> Any:
        return state + getattr(jnp, mode)(x, axis)

    written = write(total, (jnp.ones(3), X, 0), {})
    assert 'static_argnames=("axis", "mode")' in written.text
    assert 'donate_argnames="state"' in written.text
    assert defined(written) == ['def total(state, x, axis, *, mode="sum"):']
    round_trip(total, jnp.ones(3), X, 0, run=False)
    with pytest.raises(ValueError, match="written for axis = 0"):
        load(written)(jnp.ones(2), X, 1)


def test_argument_without_a_name_for_callers_is_told_by_position(round_trip: RoundTrip) -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def power(x: Any, n: int, /) -> Any:
        return x**n

    written = round_trip(power, X, 3, run=False)
    assert "static_argnums=1" in written.text
    assert defined(written) == ["def power(x, n, /):"]


def test_positions_are_counted_from_the_end_too(round_trip: RoundTrip) -> None:
    @functools.partial(jax.jit, static_argnums=-1)
    def power(x: Any, n: int) -> Any:
        return x**n

    assert 'static_argnames="n"' in round_trip(power, X, 3, run=False).text


def test_default_that_was_built_in_is_static(round_trip: RoundTrip) -> None:
    @jax.jit
    def scaled(x: Any, times: float = 2.0) -> Any:
        return x * times

    written = round_trip(scaled, X)
    assert 'static_argnames="times"' in written.text
    with pytest.raises(ValueError, match="written for times"):
        load(written)(X, 3.0)


def test_options_of_the_compiler_are_kept(round_trip: RoundTrip) -> None:
    @functools.partial(jax.jit, keep_unused=True, compiler_options={"xla_cpu_use_xnnpack": False})
    def first(x: Any, y: Any) -> Any:
        return x + 1

    text = round_trip(first, X, X, run=False).text
    assert "keep_unused=True" in text
    assert "compiler_options=" in text


def test_bound_method_shows_its_static_arguments_without_self(round_trip: RoundTrip) -> None:
    class Scale:
        @functools.partial(jax.jit, static_argnums=(0, 1))
        def apply(self, n: int, x: Any) -> Any:
            return x * n

    written = round_trip(Scale().apply, 3, X, run=False)
    assert defined(written) == ["def apply(n, x):"]
    assert 'static_argnames="n"' in written.text


def test_jitted_function_that_holds_arrays_is_one_function(round_trip: RoundTrip) -> None:
    table = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32))
    written = round_trip(jax.jit(lambda x: x @ table), X)
    assert len(defined(written)) == 1


def test_jitted_function_whose_callbacks_are_passed_in_calls_one(round_trip: RoundTrip) -> None:
    shape = jax.ShapeDtypeStruct((2, 3), jnp.float32)

    @jax.jit
    def called(x: Any) -> Any:
        return jax.pure_callback(np.sin, shape, x)

    written = round_trip(called, X, run=False)
    assert written.placeholders
    assert "    @jax.jit\n" in written.text


def test_function_around_a_jitted_one_calls_it(round_trip: RoundTrip) -> None:
    inner = jax.jit(lambda x: x * 2)
    written = round_trip(lambda x: inner(x), X)
    assert "@jax.jit" in written.text
    assert len(defined(written)) == 2


def test_shardings_stay_with_the_leaves(round_trip: RoundTrip) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    named = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))

    @functools.partial(jax.jit, in_shardings=((named, None),), out_shardings=named)
    def added(pair: Any) -> Any:
        return pair[0] + pair[1]

    assert "in_shardings=" in round_trip(added, (jnp.ones(4), jnp.ones(4))).text


def test_a_function_named_as_no_function_of_python_can_be(round_trip: RoundTrip) -> None:
    def double(x: Any) -> Any:
        return x * 2

    double.__name__ = "class"
    assert defined(round_trip(double, X)) == ["def class_(x):"]
    assert defined(round_trip(jax.jit(double), X)) == ["def class_(x):"]
