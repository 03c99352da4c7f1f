"""`jaxsight.measure` in a user's process."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest

import jaxsight


def table(x: jax.Array, ids: jax.Array) -> jax.Array:
    return jnp.sort(jnp.tanh(x[ids]))


def test_kernels_have_lines_of_the_users_file() -> None:
    shapes = jax.ShapeDtypeStruct((100, 32), "float32"), jax.ShapeDtypeStruct((8,), "int32")
    found = jaxsight.measure(table, repeat=5)(*shapes)
    assert found.times.drawn == ("x", "ids")
    assert found.times.wall.runs == 5
    assert found.wall_quartiles[0] <= found.wall_seconds <= found.wall_quartiles[1]
    assert found.device_seconds > 0
    assert all(line.startswith("test_library.py:") for row in found.kernels for line in row.lines)
    text = str(found)
    assert text.startswith("table on cpu")
    assert "5 runs" in text


def test_static_and_donated_arguments_are_those_of_the_call() -> None:
    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def repeated(n: int, x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, n, lambda i, x: jnp.sort(x) * y, x)

    x = jnp.arange(4096.0)
    found = jaxsight.measure(repeated, repeat=3)(3, x, x)
    assert found.times.drawn == ()
    assert max(row.calls for row in found.kernels) >= 3
    assert not x.is_deleted()


def test_another_device_than_that_of_the_process_is_refused() -> None:
    with pytest.raises(jaxsight.NotHere, match="cuda is not the device that JAX uses here"):
        jaxsight.measure(jnp.sin, target="cuda")(jnp.ones(3))
    with pytest.raises(jaxsight.NotHere):
        jaxsight.measure(jnp.sin, target="cuda:h100")(jnp.ones(3))


def test_errors_are_those_of_the_function() -> None:
    with pytest.raises(TypeError, match="dot_general"):
        jaxsight.measure(jnp.matmul)(jnp.ones((2, 3)), jnp.ones((2, 3)))
