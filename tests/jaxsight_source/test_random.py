"""Bits of raw keys are drawn by the public function, and their counters alone are passed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight_source.written import Written, load

RoundTrip = Callable[..., Written]

KEY = jnp.array([3, 4], jnp.uint32)
random_bits = jax.extend.random.threefry_prng_impl.random_bits


@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_bits_of_a_raw_key(round_trip: RoundTrip, width: int, style: str) -> None:
    written = round_trip(lambda key: random_bits(key, width, (3, 4)), KEY, style=style)
    assert f"threefry_prng_impl.random_bits(key, {width}, (3, 4))" in written.text


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_counters_have_no_public_function(round_trip: RoundTrip, style: str) -> None:
    (counters,) = (
        each.primitive
        for each in jax.make_jaxpr(lambda key: random_bits(key, 32, (3,)))(KEY).eqns
        if each.primitive.name == "iota_2x32_shape"
    )

    def count(x: Any) -> Any:
        return [x + each for each in counters.bind(shape=(3,))]

    x = np.arange(3, dtype=np.uint32)
    written = round_trip(count, x, run=False, style=style)
    assert set(written.passed) == {"iota_2x32_shape"}
    made = load(written)
    np.testing.assert_array_equal(made(x)[1], count(x)[1])


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_functions_of_a_key_are_mapped_over_an_array_of_keys(
    round_trip: RoundTrip, style: str
) -> None:
    def draw(keys: Any) -> Any:
        bits = jax.vmap(jax.vmap(lambda key: jax.random.bits(key, (4,))))(keys)
        return bits, jax.vmap(jax.random.split)(keys[0]), jax.vmap(jax.random.fold_in)(keys[0], KEY)

    written = round_trip(draw, jax.random.split(jax.random.key(0), (3, 2)), style=style)
    assert "jax.vmap(jax.vmap(lambda key: jax.random.bits(key, (4,), " in written.text
    assert "jax.vmap(jax.random.split)(" in written.text
    assert "jax.vmap(jax.random.fold_in)(" in written.text
    assert ".bind(" not in written.text
