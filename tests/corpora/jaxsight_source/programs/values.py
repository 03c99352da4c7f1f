"""Literals, constants and number formats."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def literals_of_every_sign_and_size() -> Call:
    def run(x: Any) -> Any:
        return x * -0.0, x + jnp.inf, x - jnp.inf, x * 1e-45, x + 16777217, x * 0.1, -0.0

    return called(run, floats(3))


@program()
def outputs_that_are_literals() -> Call:
    return called(lambda x: (1, 2.5, True, -0.0, float("nan"), x, 3 + 4j, None), floats(2))


@program()
def nan_payloads() -> Call:
    quiet = np.array([0x7FC00001, 0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
    single = jnp.asarray(quiet[1])

    def run(x: Any) -> Any:
        return jnp.where(x > 0, jnp.asarray(quiet), jnp.float32(1)), single, quiet

    return called(run, floats(3))


@program()
def infinities_and_zeros_in_constants() -> Call:
    table = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310], np.float64)
    return called(lambda x: (x + jnp.asarray(table), jnp.asarray(table).astype(jnp.float32)), 2.0)


@program()
def weak_types_through_everything() -> Call:
    def run(x: Any, y: Any) -> Any:
        weak = jnp.asarray(2.0) + x
        return weak, weak * y, lax.full_like(x, 3), jnp.where(True, x, 1), jnp.add(x, 1), x * 1j

    return called(run, 1.5, floats(3, dtype=np.float16))


@program()
def strong_scalars_beside_weak_ones() -> Call:
    def run(x: Any) -> Any:
        return x * np.float32(2), x * jnp.float16(2), x + jnp.array(1), x + np.int8(1), x * 2

    return called(run, floats(3, dtype=np.float16))


@program()
def large_unsigned_literals() -> Call:
    def run(x: Any) -> Any:
        mixed = x * np.uint32(2654435769) ^ np.uint32(0xFFFFFFFF)
        return mixed, mixed >> np.uint32(31), lax.population_count(mixed), ~mixed

    return called(run, integers(4, dtype=np.uint32))


@program(x64=(True,))
def sixty_four_bit_literals() -> Call:
    def run(x: Any) -> Any:
        return x * np.uint64(0x9E3779B97F4A7C15), x - np.uint64(2**64 - 1), jnp.int64(-(2**63))

    return called(run, integers(3, dtype=np.uint64))


@program()
def integers_divide_and_wrap() -> Call:
    def run(x: Any, y: Any) -> Any:
        return lax.div(x, y), lax.rem(x, y), x // y, x % y, jnp.divmod(x, y), x / y, -x, abs(x)

    return called(run, integers(6, dtype=np.int8) - 5, integers(6, dtype=np.int8) + 1)


@program()
def small_integers_sum_without_promotion() -> Call:
    def run(x: Any) -> Any:
        summed = lax.reduce(x, np.int8(0), lax.add, (0,))
        return summed, jnp.sum(x, dtype=jnp.int8), jnp.sum(x), lax.cumsum(x), jnp.mean(x)

    return called(run, integers(5, dtype=np.int8))


@program()
def bfloat16_and_float16_literals() -> Call:
    def run(x: Any, y: Any) -> Any:
        return x * 0.1 + 1.0039, y * 0.1 - 65504, jnp.bfloat16(1.0078125) * x, x.astype(y.dtype)

    half = floats(3, dtype=np.float16)
    return called(run, floats(3).astype(ml_dtypes.bfloat16), half)


@program(gradient=False)
def eight_bit_floats() -> Call:
    kinds = [np.dtype(getattr(ml_dtypes, name)) for name in (
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz",
        "float8_e3m4", "float8_e4m3", "float8_e8m0fnu",
    )]  # fmt: skip
    tables = [np.array([0.5, 1.0, 2.0, 4.0]).astype(kind) for kind in kinds]

    def run(x: Any) -> Any:
        cast = [x.astype(kind) for kind in kinds]
        return cast, [jnp.asarray(t) for t in tables], [t.astype(jnp.float32) for t in cast]

    return called(run, floats(4, low=0.5, high=4))


@program(gradient=False)
def four_bit_integers_and_floats() -> Call:
    table = np.array([-8, 7, 0, 3]).astype(ml_dtypes.int4)
    unsigned = np.array([15, 7, 0, 3]).astype(ml_dtypes.uint4)

    def run(x: Any) -> Any:
        i = x.astype(jnp.int4)
        return i + jnp.asarray(table), jnp.asarray(unsigned), i.astype(jnp.uint4), jnp.int4(-3) * i

    return called(run, integers(4, modulus=7))


@program(gradient=False)
def two_bit_integers() -> Call:
    def run(x: Any) -> Any:
        return x.astype(jnp.int2), x.astype(jnp.uint2), x.astype(jnp.float4_e2m1fn)

    return called(run, integers(4, modulus=2))


@program()
def complex_numbers() -> Call:
    root = np.exp(2j * np.pi * np.arange(4) / 4).astype(np.complex64)

    def run(x: Any) -> Any:
        z = lax.complex(x, -x) * (0.0 - 1j) + jnp.asarray(root)
        return z, z.real, z.imag, jnp.conj(z), abs(z), jnp.angle(z), z**2, complex(-0.0, 1.0)

    return called(run, floats(4))


@program(x64=(True,))
def double_precision_beside_single() -> Call:
    def run(x: Any, y: Any) -> Any:
        return x * 0.1, y * 0.1, x + y, jnp.float64(1) / 3, x.astype(np.complex128) * (0.1 + 0.2j)

    return called(run, floats(3, dtype=np.float64), floats(3))


@program()
def constants_that_are_regular() -> Call:
    made = [
        np.zeros((64, 64), np.float32),
        np.full((50, 3), 2.5, np.float16),
        np.arange(200, dtype=np.int32),
        np.arange(10, 400, 3, dtype=np.int32).astype(np.float32),
        np.eye(40, dtype=np.float32),
        np.tri(30, dtype=np.bool_),
        np.ones((100,), np.complex64),
        np.full((70,), -0.0, np.float32),
        np.linspace(0, 1, 101, dtype=np.float32),
        np.broadcast_to(np.arange(60, dtype=np.int32), (20, 60)),
    ]

    def run(x: Any) -> Any:
        return [
            jnp.asarray(m) * x.astype(m.dtype) if m.dtype != bool else jnp.asarray(m) for m in made
        ]

    return called(run, np.float32(3))


@program()
def constants_that_are_irregular() -> Call:
    noise = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    low = np.random.default_rng(1).standard_normal((300,)).astype(ml_dtypes.bfloat16)
    flags = np.random.default_rng(2).random((500,)) > 0.5

    def run(x: Any) -> Any:
        return x @ jnp.asarray(noise), jnp.asarray(low), jnp.asarray(flags)

    return called(run, floats(64))


@program()
def one_constant_used_often() -> Call:
    table = jnp.asarray(np.random.default_rng(3).standard_normal(300).astype(np.float32))

    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + table, (c * table).sum()), x * table, None, 3), table

    return called(run, np.float32(0.5))


@program()
def empty_arrays_and_zero_sized_axes() -> Call:
    def run(x: Any) -> Any:
        nothing = jnp.zeros((0, 3), jnp.int16)
        return x[:0], nothing, jnp.sum(x[:0]), jnp.concatenate([x[:0], x]), jnp.ones((2, 0))

    return called(run, floats(3))


@program()
def index_types_of_argmin() -> Call:
    def run(x: Any) -> Any:
        small = lax.argmin(x, 1, np.int16)
        return jnp.argmin(x), jnp.argmax(x, axis=0), small, lax.argmax(x, 0, np.uint8)

    return called(run, floats(4, 3))


@program()
def reduced_precision_and_bits() -> Call:
    def run(x: Any) -> Any:
        bits = lax.bitcast_convert_type(x, np.uint32)
        halves = lax.bitcast_convert_type(x, np.uint16)
        return lax.reduce_precision(x, 5, 10), bits, halves, lax.nextafter(x, x + 1)

    return called(run, floats(3))


@program()
def booleans_and_bits() -> Call:
    def run(p: Any, i: Any) -> Any:
        return p & True, ~p, p | False, p ^ True, i & 3, i | 8, i ^ -1, ~i, i << 2, i >> 1, p.all()

    return called(run, integers(4, modulus=2).astype(bool), integers(4))


@program()
def unused_inputs_and_inputs_returned_as_they_are() -> Call:
    return called(lambda a, b, c, unused: (c, a, a), floats(2), floats(3), integers(2), {"u": 1.0})


@program(gradient=False)
def dtype_of_extended_keys_in_constants() -> Call:
    key = jax.random.key(42)
    batch = jax.random.split(jax.random.key(7, impl="rbg"), 3)

    def run(x: Any) -> Any:
        return x + jax.random.normal(key, (2,)), batch, jax.random.key_data(batch[1])

    return called(run, floats(2))
