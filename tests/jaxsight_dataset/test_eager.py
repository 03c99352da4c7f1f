"""Operations in NumPy return what XLA returns, up to rounding errors."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_dataset.compat import eager
from jaxsight_dataset.compat.eager import NotInNumpy
from jaxsight_dataset.rows.numpy_operations import OPERATIONS

CHANCE = np.random.default_rng(0)
X = np.float32(CHANCE.normal(size=(3, 4)))
Y = np.float32(CHANCE.normal(size=(3, 4)))
UNIT, POSITIVE = np.float32(np.tanh(X)), np.float32(np.exp(X))
COARSE = X.astype(jnp.bfloat16)
WHOLE = CHANCE.integers(-5, 5, (3, 4)).astype(np.int32)
UNSIGNED = CHANCE.integers(0, 2**32, (3, 4), np.uint32)
BITS = X > 0
BATCHES = np.float32(CHANCE.normal(size=(2, 3, 4, 5)))
COLUMNS = np.float32(CHANCE.normal(size=(5, 2, 4)))

CALLS: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    **{name: [(getattr(lax, name), (X,))] for name in ("cos", "exp", "exp2", "expm1", "floor")},
    **{name: [(getattr(lax, name), (X,))] for name in ("cbrt", "ceil", "cosh", "sin", "sinh")},
    **{name: [(getattr(lax, name), (X,))] for name in ("tan", "tanh", "square", "sign", "logistic")},
    **{name: [(getattr(lax, name), (UNIT,))] for name in ("acos", "asin", "asinh", "atan", "atanh")},
    **{name: [(getattr(lax, name), (POSITIVE,))] for name in ("log", "log1p", "rsqrt", "sqrt")},
    **{name: [(getattr(lax, name), (X, Y))] for name in ("atan2", "div", "nextafter", "rem")},
    **{name: [(getattr(lax, name), (X, Y)), (getattr(lax, name), (WHOLE, WHOLE.T.reshape(3, 4)))]
       for name in ("add", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "sub")},
    "abs": [(lax.abs, (X,)), (lax.abs, (WHOLE,))],
    "acosh": [(lax.acosh, (POSITIVE + 1,))],
    "add_any": [(jax.grad(lambda x: jnp.sum(x * x)), (X,))],
    "and": [(lax.bitwise_and, (WHOLE, WHOLE.T.reshape(3, 4)))],
    "broadcast_in_dim": [(lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (X,))],
    "clamp": [(lax.clamp, (np.float32(-0.5), X, np.float32(0.5)))],
    "concatenate": [(lambda x, y: lax.concatenate([x, y], 1), (X, Y))],
    "convert_element_type": [
        (lambda x: lax.convert_element_type(x, jnp.bfloat16), (X,)),
        (lambda x: lax.convert_element_type(x, np.int32), (X,)),
        (lambda x: lax.convert_element_type(x, bool), (WHOLE,)),
    ],
    "copy": [(jnp.copy, (X,))],
    "dot_general": [
        (lambda x, y: lax.dot_general(x, y, (([2], [2]), ([0], [1]))), (BATCHES, COLUMNS)),
        (lambda x, y: lax.dot_general(x, y, (([1], [1]), ([], []))), (WHOLE, WHOLE)),
        (lambda x: lax.dot_general(x, x, (([1], [1]), ([], []))), (COARSE,)),
    ],
    "imag": [(lambda x: lax.imag(x), (X + 1j * Y,))],
    "integer_pow": [(lambda x: lax.integer_pow(x, -3), (X,)), (lambda x: lax.integer_pow(x, 3), (WHOLE,))],
    "iota": [(lambda: lax.broadcasted_iota(np.int32, (3, 4), 1), ())],
    "is_finite": [(lax.is_finite, (np.float32([1, np.inf, np.nan]),))],
    "neg": [(lax.neg, (X,))],
    "not": [(lax.bitwise_not, (BITS,)), (lax.bitwise_not, (WHOLE,))],
    "or": [(lax.bitwise_or, (BITS, ~BITS))],
    "pow": [(lax.pow, (POSITIVE, X))],
    "real": [(lax.real, (X + 1j * Y,))],
    "reduce_and": [(lambda x: jnp.all(x, 0), (BITS,))],
    "reduce_max": [(lambda x: lax.reduce_max(x, (0,)), (COARSE,))],
    "reduce_min": [(lambda x: lax.reduce_min(x, (0, 1)), (X,))],
    "reduce_or": [(lambda x: jnp.any(x, 1), (BITS,))],
    "reduce_prod": [(lambda x: lax.reduce_prod(x, (1,)), (X,))],
    "reduce_sum": [
        (lambda x: lax.reduce_sum(x, (1,)), (X,)),
        (lambda x: lax.reduce_sum(x, (0,)), (COARSE,)),
        (lambda x: lax.reduce_sum(x, (0, 1)), (WHOLE,)),
    ],
    "reshape": [(lambda x: lax.reshape(x, (2, 6)), (X,)), (lambda x: lax.reshape(x, (2, 6), (1, 0)), (X,))],
    "rev": [(lambda x: lax.rev(x, (0, 1)), (X,))],
    "select_n": [(lax.select_n, (BITS, X, Y))],
    "shift_left": [(lax.shift_left, (UNSIGNED, UNSIGNED % np.uint32(32)))],
    "shift_right_logical": [(lax.shift_right_logical, (UNSIGNED, UNSIGNED % np.uint32(32)))],
    "slice": [(lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)), (X,))],
    "squeeze": [(lambda x: lax.squeeze(x, (1,)), (X[:, None],))],
    "transpose": [(lambda x: lax.transpose(x, (1, 0)), (X,))],
    "xor": [(lax.bitwise_xor, (WHOLE, WHOLE.T.reshape(3, 4)))],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_numpy_agrees_with_xla(name: str) -> None:
    used = []

    def watched(*operands: Any, **parameters: Any) -> Any:
        result = OPERATIONS[name](*operands, **parameters)
        used.append(name)
        return result

    for function, arrays in CALLS[name]:
        used.clear()
        given = tuple(map(jax.device_put, arrays))
        with eager.replaced({**OPERATIONS, name: watched}):
            results = jax.tree.leaves(function(*given))
        assert used
        for result, expected in zip(
            results, jax.tree.leaves(jax.jit(function)(*given)), strict=True
        ):
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            close = 2e-2 if result.dtype == jnp.bfloat16 else 2e-6
            np.testing.assert_allclose(
                np.asarray(result).astype(np.float64),
                np.asarray(expected).astype(np.float64),
                rtol=close,
                atol=close,
            )


@pytest.mark.parametrize(
    ("name", "operands", "parameters"),
    [
        ("convert_element_type", (np.float32([3e9]),), {"new_dtype": np.int32, "weak_type": False}),
        ("sqrt", (np.complex64([1j]),), {}),
        ("shift_left", (np.uint32([1]), np.uint32([40])), {}),
        ("max", (np.complex64([1]), np.complex64([2])), {}),
    ],
)
def test_what_xla_defines_otherwise_is_not_done(
    name: str, operands: tuple[Any, ...], parameters: dict[str, Any]
) -> None:
    with pytest.raises(NotInNumpy):
        OPERATIONS[name](*operands, **parameters)


def test_loops_and_jitted_functions_run_operation_by_operation() -> None:
    operations = []

    def counted(*operands: Any, **parameters: Any) -> Any:
        operations.append("mul")
        return OPERATIONS["mul"](*operands, **parameters)

    def function(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: jax.jit(lax.mul)(x, x), x)

    x = jax.device_put(UNIT)
    with eager.replaced({"mul": counted}):
        result = function(x)
    assert len(operations) == 3
    np.testing.assert_allclose(result, jax.jit(function)(x), rtol=1e-5)
    with eager.replaced({}):
        assert isinstance(function(x), jax.Array)
    assert len(operations) == 3
