"""Values for arguments that are given by their types."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight.measuring.arguments import arguments, index_limits
from jaxsight_source.compat.staging import open_jaxpr
from jaxsight_source.jaxprs.arguments import SMALL


def limits(function: object, *shapes: object) -> dict[int, int]:
    return index_limits(open_jaxpr(jax.make_jaxpr(function)(*shapes)))  # type: ignore[arg-type]


IDS = jnp.zeros(8, "int32")
TABLE = jnp.zeros((50, 4))


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (lambda table, ids: table[ids], (TABLE, IDS), {1: 50}),
        (lambda table, ids: jnp.take(table, ids, axis=0), (TABLE, IDS), {1: 50}),
        (lambda table, ids: jnp.take(table, ids, axis=1), (TABLE, IDS), {1: 4}),
        (lambda table, ids: jax.jit(lambda t, i: t[i])(table, ids), (TABLE, IDS), {1: 50}),
        (lambda table, ids: table.at[ids].add(1.0), (TABLE, IDS), {1: 50}),
        (lambda x, at: lax.dynamic_slice(x, (at, 0), (10, 4)), (TABLE, jnp.int32(0)), {1: 41}),
        (lambda ids: jax.nn.one_hot(ids, 7), (IDS,), {0: 7}),
        (lambda v, ids: jax.ops.segment_sum(v, ids, 6), (jnp.zeros(8), IDS), {1: 6}),
        (lambda x, ids: jnp.take_along_axis(x, ids[:, None], 1), (jnp.zeros((8, 9)), IDS), {1: 9}),
        (
            lambda t, ids: lax.scan(lambda c, i: (c + t[i], None), jnp.zeros(4), ids)[0],
            (TABLE, IDS),
            {1: 50},
        ),
        (lambda x, n: x * n, (TABLE, jnp.int32(3)), {}),
    ],
)
def test_indices_are_bounded_by_what_they_index(
    function: object, args: tuple[object, ...], expected: dict[int, int]
) -> None:
    assert limits(function, *args) == expected


def drawn(function: object, *shapes: object) -> list[np.ndarray]:
    jaxpr = jax.make_jaxpr(function)(*shapes)  # type: ignore[arg-type]
    flat, names = arguments(jaxpr, [], {})
    assert names == [f"argument {at}" for at in range(len(flat))]
    return [np.asarray(value) for value in flat]


def test_arguments_are_finite_and_always_the_same() -> None:
    types = [jax.ShapeDtypeStruct((4, 3), kind) for kind in ("float32", "bfloat16", "complex64")]
    first = drawn(lambda *args: args, *types)
    again = drawn(lambda *args: args, *types)
    for one, other in zip(first, again, strict=True):
        assert np.isfinite(one.astype("complex64")).all()
        assert (one == other).all()


def test_integers_of_unknown_use_are_small_and_fit_their_type() -> None:
    types = [jax.ShapeDtypeStruct((100,), kind) for kind in ("int32", "uint8", "int4")]
    for value in drawn(lambda *args: args, *types):
        numbers = value.astype("int64")
        assert numbers.min() >= 0
        assert numbers.max() < SMALL[1]


def test_keys_and_booleans_are_drawn() -> None:
    key = jax.eval_shape(lambda: jax.random.key(0))
    flat, _ = arguments(
        jax.make_jaxpr(lambda k, b: (k, b))(key, jax.ShapeDtypeStruct((9,), "bool")), [], {}
    )
    assert isinstance(flat[0], jax.Array)
    assert jnp.issubdtype(flat[0].dtype, jax.dtypes.prng_key)
    assert {True, False} == set(np.asarray(flat[1]).tolist())


def test_large_arrays_repeat_what_is_drawn() -> None:
    [value] = drawn(lambda x: x, jax.ShapeDtypeStruct((3, 1 << 20), "float32"))
    assert value.shape == (3, 1 << 20)
    assert value.std() == pytest.approx(1.0, abs=0.01)


def test_the_users_values_are_used_where_their_type_is_that_of_the_argument() -> None:
    jaxpr = jax.make_jaxpr(lambda x, n, y: x * n * y)(jnp.ones(3), 2.0, jnp.ones(3))
    flat, names = arguments(
        jaxpr, ["x", "n", "y"], {"x": jnp.arange(3.0), "n": 5.0, "y": jnp.ones(4)}
    )
    assert np.asarray(flat[0]).tolist() == [0.0, 1.0, 2.0]
    assert flat[1] == 5.0
    assert names == ["y"]
