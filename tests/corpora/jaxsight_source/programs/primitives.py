"""Primitives that no harness of JAX's reaches, each as directly as can be."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives as ext

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def elementwise_without_harnesses() -> Call:
    def run(x: Any, i: Any) -> Any:
        return (
            lax.clz(i), lax.polygamma(np.float32(1), x + 1), lax.zeta(x + 2, x + 1), lax.igamma_grad_a(x, x), lax.square(x),
            lax.bitwise_not(i), lax.tan(x), lax.cbrt(x), lax.rsqrt(x), lax.logistic(x), lax.sign(i),
        )  # fmt: skip

    return called(run, floats(3, low=0.2, high=0.9), integers(3))


@program(since=(0, 11))
def elementwise_of_the_newest() -> Call:
    def run(x: Any) -> Any:
        return lax.log2(x), lax.one_minus_square(x), lax.polynomial(x, (1.0, 2.0, 3.0))

    return called(run, floats(3, low=0.2, high=0.9))


@program(gradient=False)
def searches_that_jax_keeps_whole() -> Call:
    def run(x: Any, y: Any) -> Any:
        row = jnp.sort(x[0])
        return (
            jnp.nonzero(x > 0.5, size=4), jnp.nonzero(x > 0.5, size=4, fill_value=7), jnp.nonzero(x, size=2, fill_value=(5, 6)),
            jax.vmap(lambda v: jnp.nonzero(v, size=2)[0])(x), jnp.unique(x, size=5, return_counts=True), jnp.argwhere(x > 0, size=3),
            jnp.searchsorted(row, y), jnp.searchsorted(row, y, side="right", method="sort"),
            jax.vmap(jnp.searchsorted)(jnp.sort(x, axis=1), x), jnp.digitize(y, row), jnp.interp(y, row, row * 2),
            jnp.histogram(x, 4), jnp.where(x > 0.5, size=3),
        )  # fmt: skip

    return called(run, floats(2, 3, low=0, high=1), floats(3, low=0, high=1))


@program()
def mantissas_and_exponents() -> Call:
    def run(x: Any, i: Any) -> Any:
        mantissa, exponent = jnp.frexp(x)
        return jnp.ldexp(x, i), mantissa, jnp.ldexp(mantissa, exponent)

    return called(run, floats(3, low=0.2, high=0.9), integers(3))


@program()
def total_order_comparisons() -> Call:
    def run(x: Any, y: Any) -> Any:
        return ext.eq_to_p.bind(x, y), ext.le_to_p.bind(x, y), ext.lt_to_p.bind(x, y)

    return called(run, floats(3), floats(3) * -1)


@program()
def rounding_methods_and_powers() -> Call:
    def run(x: Any, n: Any) -> Any:
        return (
            lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
            lax.integer_pow(x, -3), lax.pow(x, n), lax.pow(x, x), x**2, x**0.5, 2**x, lax.exp2(x),
        )  # fmt: skip

    return called(run, floats(3, low=0.2, high=2.9), np.int32(3))


@program()
def accuracies_of_elementwise_functions() -> Call:
    def run(x: Any) -> Any:
        return (
            lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), lax.sin(x, accuracy=lax.Tolerance(1e-3, 1e-3, 4)),
            lax.tanh(x, accuracy=lax.AccuracyMode.DEFAULT),
        )  # fmt: skip

    return called(run, floats(3))


@program(gradient=False)
def uniform_numbers_of_the_device() -> Call:
    def run(a: Any, b: Any) -> Any:
        return lax.rng_uniform(a, b, (3,))

    return called(run, np.float32(0), np.float32(1), _bits=False)


@program()
def splits_stacks_and_tiles() -> Call:
    def run(x: Any) -> Any:
        made = [
            lax.split(x, (1, 3), axis=1),
            jnp.tile(x, (2, 2)),
            jnp.stack([x, x], -1),
            jnp.unstack(x, axis=1),
        ]
        if hasattr(lax, "stack"):
            made += [lax.stack([x, x], 1), lax.unstack(x, 0), lax.tile(x, (2, 1))]
        return made

    return called(run, floats(2, 4))


@program()
def scatter_that_subtracts() -> Call:
    def run(x: Any, i: Any, v: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        return lax.scatter_sub(x, i, v, numbers), lax.scatter_apply(
            x, i, jnp.sin, numbers, update_shape=(3,)
        )

    return called(run, floats(5), integers(3, 1, modulus=5), floats(3))


@program()
def empty_and_uninitialized() -> Call:
    def run(x: Any) -> Any:
        return lax.dynamic_update_slice(lax.empty((3,), np.float32), x, (0,)), jnp.empty_like(x)

    return called(run, floats(3))


@program()
def additions_of_cotangents() -> Call:
    def run(x: Any) -> Any:
        return ext.add_jaxvals_p.bind(x, x * 2)

    return called(run, floats(3))


@program(gradient=False)
def threefry_directly() -> Call:
    def run(a: Any, x: Any) -> Any:
        return ext.threefry2x32_p.bind(a, a + 1, x, x + 1)

    return called(run, integers(3, dtype=np.uint32), integers(3, dtype=np.uint32))


@program()
def copies_and_conversions() -> Call:
    def run(x: Any, y: Any) -> Any:
        return (
            jnp.copy(x), jnp.array(x, copy=True), lax.convert_element_type(x, np.int32), x.astype(bool), y + 0,
            lax.convert_element_type(y, np.float32), jnp.asarray(y, np.float16), x.view(np.int32), lax.stop_gradient(x),
        )  # fmt: skip

    return called(run, floats(3), 2.0)


@program()
def broadcasts_of_every_shape() -> Call:
    def run(x: Any, s: Any) -> Any:
        return (
            lax.broadcast(x, (2, 2)), lax.broadcast_in_dim(s, (2, 3), ()), jnp.broadcast_to(s, (4,)), x[:, None] + x,
            lax.broadcast_in_dim(x, (3, 1), (0,)), lax.broadcast_in_dim(np.float32(3), (2,), ()), lax.full((2, 2), s),
            jnp.broadcast_arrays(x, s),
        )  # fmt: skip

    return called(run, floats(3), np.float32(2))


@program(gradient=False)
def reduce_with_a_branching_body() -> Call:
    def run(x: Any) -> Any:
        def body(a: Any, b: Any) -> Any:
            return lax.select(a > b, a, b) + jnp.float32(0.5)

        return lax.reduce(x, np.float32(-1), body, (0,))

    return called(run, floats(3, 2))


@program(gradient=False)
def scans_of_effects_in_jits() -> Call:
    def run(x: Any) -> Any:
        @jax.jit
        def inner(v: Any) -> Any:
            jax.debug.print("{v}", v=v)
            return v + 1

        return lax.scan(lambda c, _: (inner(c), None), x, None, 2)[0]

    return called(run, floats(2))


@program(since=(0, 9))
def high_halves_of_products() -> Call:
    return called(lambda i, j: lax.mulhi(i, j), integers(3) * 2**27, integers(3) * 2**26)
