"""Arrays that can be changed in place for a while are what those of NumPy would be, and then what
they were.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight.tracer.compat.in_place_updates import changeable


def test_an_item_is_assigned_and_given_back() -> None:
    x = jnp.arange(4.0)
    same = x
    with changeable():
        x[1] = 9.0
        x[2:] += 1.0
        x.at[0] = 5.0
        assert same.tolist() == [5.0, 9.0, 3.0, 4.0]
        assert np.array_equal(np.asarray(x), [5.0, 9.0, 3.0, 4.0])
        assert (x + 1).tolist() == [6.0, 10.0, 4.0, 5.0]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1.0


def test_slices_are_views_as_in_numpy() -> None:
    x = jnp.zeros((2, 3))
    y = np.zeros((2, 3))
    with changeable():
        for a in (x, y):
            row = a[0]
            part = row[1:]
            part[0] = 1.0
            a[0, 2] = 2.0
            picked = a[np.array([0])]
            picked[0] = 7.0
            assert row.tolist() == [0.0, 1.0, 2.0]
            assert part.tolist() == [1.0, 2.0]
        assert x.tolist() == y.tolist()
    assert not x.any()


def test_what_numpy_makes_of_an_array_can_be_changed() -> None:
    x = jnp.zeros(3)
    with changeable():
        y = np.asarray(x)
        y[0] = 1.0
        assert y.tolist() == [1.0, 0.0, 0.0]
    assert not np.asarray(x).any()
    assert not np.asarray(x).flags.writeable


def test_under_transformations() -> None:
    def f(x: jax.Array) -> jax.Array:
        x[0] = 2.0
        x[1] *= 3.0
        return (x**2).sum()

    with changeable(), jax.disable_jit():
        assert jax.vmap(f)(jnp.ones((2, 3))).tolist() == [14.0, 14.0]
        assert jax.grad(f)(jnp.ones(3)).tolist() == [0.0, 18.0, 2.0]


def test_a_traced_value_is_not_stored() -> None:
    x = jnp.zeros(3)

    def f(y: jax.Array) -> jax.Array:
        x[0] = y
        return x

    with changeable(), pytest.raises(TypeError, match="traced value"):
        jax.vmap(f)(jnp.ones(2))
    assert not x.any()
