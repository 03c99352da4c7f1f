"""Keys, typed and raw, of all implementations."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def typed_keys_in_and_out() -> Call:
    def run(key: Any) -> Any:
        a, b = jax.random.split(key)
        return a, jax.random.fold_in(b, 7), jax.random.uniform(a, (3,)), jax.random.key_data(b)

    return called(run, jax.random.key(0))


@program()
def typed_keys_of_other_implementations() -> Call:
    def run(key: Any, other: Any) -> Any:
        return (
            jax.random.bits(key, (3,)),
            jax.random.split(other, 2),
            jax.random.normal(other, (2,)),
        )

    return called(run, jax.random.key(1, impl="rbg"), jax.random.key(2, impl="unsafe_rbg"))


@program()
def raw_keys() -> Call:
    def run(key: Any) -> Any:
        a, b = jax.random.split(key)
        return (
            b,
            jax.random.normal(a, (4,)),
            jax.random.fold_in(a, 3),
            jax.random.randint(b, (3,), 0, 9),
        )

    return called(run, jax.random.PRNGKey(0))


@program()
def keys_made_inside() -> Call:
    def run(seed: Any, x: Any) -> Any:
        key = jax.random.key(seed)
        made = jax.random.key(17, impl="rbg")
        return (
            x * jax.random.bernoulli(key, 0.5, x.shape),
            jax.random.uniform(made, (2,)),
            jax.random.PRNGKey(3),
        )

    return called(run, np.int32(5), floats(4))


@program()
def keys_wrapped_and_unwrapped() -> Call:
    def run(raw: Any) -> Any:
        key = jax.random.wrap_key_data(raw)
        four = jax.random.wrap_key_data(jnp.concatenate([raw, raw]), impl="rbg")
        return jax.random.key_data(jax.random.clone(key)), four, jax.random.key_data(four)

    return called(run, integers(2, dtype=np.uint32))


@program()
def arrays_of_keys_sliced_and_scanned() -> Call:
    def run(keys: Any, i: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            return c + jax.random.normal(k), jax.random.split(k, 2)

        total, inner = lax.scan(step, 0.0, keys)
        return total, inner, keys[i], keys.reshape(2, 2), inner[:, 0], jnp.concatenate([keys, keys])

    return called(run, jax.random.split(jax.random.key(3), 4), np.int32(2))


@program()
def vmapped_randomness() -> Call:
    def run(keys: Any) -> Any:
        return jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys), jax.vmap(jax.random.split)(
            keys
        )

    return called(run, jax.random.split(jax.random.key(4), 3))


@program(gradient=False)
def distributions_of_all_sorts() -> Call:
    def run(key: Any) -> Any:
        r = jax.random
        return (
            r.gamma(key, 2.0, (2,)), r.beta(key, 1.0, 2.0), r.categorical(key, jnp.zeros((2, 3))), r.cauchy(key),
            r.choice(key, 5, (3,), replace=False), r.dirichlet(key, jnp.ones(3)), r.exponential(key, (2,)),
            r.gumbel(key, (2,)), r.laplace(key), r.permutation(key, 5), r.poisson(key, 3.0, (2,)),
            r.truncated_normal(key, -1.0, 1.0, (3,)), r.multivariate_normal(key, jnp.zeros(2), jnp.eye(2)),
            r.rademacher(key, (3,)), r.t(key, 3.0), r.orthogonal(key, 2), r.binomial(key, 5.0, 0.5), r.ball(key, 2),
        )  # fmt: skip

    return called(run, jax.random.key(5))


@program()
def gradient_through_gamma() -> Call:
    return called(
        jax.grad(lambda a, key: jax.random.gamma(key, a)), np.float32(2), jax.random.key(6)
    )


@program(gradient=False)
def generators_of_bits() -> Call:
    def run(state: Any) -> Any:
        random = lax.RandomAlgorithm
        return (
            lax.rng_bit_generator(state, (3,), np.uint32), lax.rng_bit_generator(state, (2, 2), np.uint16),
            lax.rng_bit_generator(state, (2,), np.uint8, algorithm=random.RNG_PHILOX),
            lax.rng_bit_generator(state, (2,), algorithm=random.RNG_THREE_FRY),
        )  # fmt: skip

    return called(run, integers(4, dtype=np.uint32))


@program()
def partitionable_and_not() -> Call:
    def run(key: Any) -> Any:
        with jax.threefry_partitionable(False):
            a = jax.random.uniform(key, (5,))
        return a, jax.random.uniform(key, (5,))

    return called(run, jax.random.key(8))


@program()
def bits_of_a_raw_key() -> Call:
    drawn = jax.extend.random.threefry_prng_impl.random_bits
    return called(lambda key: drawn(key, 32, (3,)), integers(2, dtype=np.uint32))


@program()
def dropout_and_its_gradient() -> Call:
    def drop(x: Any, key: Any) -> Any:
        keep = jax.random.bernoulli(key, 0.8, x.shape)
        return jnp.where(keep, x / 0.8, 0).sum()

    return called(jax.value_and_grad(drop), floats(6), jax.random.key(9))
