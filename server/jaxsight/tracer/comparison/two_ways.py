"""Compile functions in two ways, to detect wrong results of the compiler.

jaxlib 0.10.2 returns wrong numbers for a small matrix product that is reduced (jax#39103) and
crashes in other reductions (jax#39257, jax#40412); the bug is in the YNNPACK fusions of its CPU
backend, which the pass `dot-library-rewriter` creates.
The second way disables that pass and optimizations of the machine code.

A difference counts as rounding if a sum of as many terms may have it (Higham, *Accuracy and
Stability of Numerical Algorithms*, 4.2), or if inputs that differ in their last bit change the
result about as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat.jaxpr_types import DType

# Compare arrays up to rounding errors.

TOLERANCE = {8: 1e-11, 4: 1e-5, 2: 1e-2, 1: 2e-1}
"""Relative tolerances by bytes of a floating-point number, for a different order of operations:
for float32 ten times that of JAX's tests (`_default_tolerance` in jax/_src/public_test_util.py)."""


class Incomparable(Exception):
    """Two programs differ, or cannot be compared; the message has the reason."""


def agree(
    name: str,
    expected: jax.Array | np.ndarray,
    actual: jax.Array | np.ndarray,
    below: float,
    slack: float = 1.0,
) -> bool:
    """Return whether two arrays are bitwise equal.

    Args:
        name: the arrays' name in an error.
        expected: any dtype and shape; PRNG keys are compared by their data.
        actual: the same dtype.
        below: the fraction of the root mean square that is added to each number's magnitude.
        slack: a factor of the tolerance.

    Raises:
        Incomparable: they are not even equal up to rounding.
    """
    expected, actual = plain(expected), plain(actual)
    if expected.shape != actual.shape:
        raise Incomparable(f"{name} has a different shape")
    # By their bytes, a NaN is equal to itself, and 0 is not -0.
    if expected.tobytes() == actual.tobytes():
        return True
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        raise Incomparable(f"{name} differs: {first(expected, actual, expected != actual)}")
    a, b = wide(expected), wide(actual)
    finite = a[np.isfinite(a)]
    scale = math.sqrt(float(np.mean(np.abs(finite) ** 2))) if finite.size else 0.0
    # The difference of equal infinities is NaN; they are compared below.
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= slack * tolerance(expected.dtype) * (
            np.maximum(np.abs(a), np.abs(b)) + below * scale
        )
    near |= (a == b) | (np.isnan(a) & np.isnan(b))
    if not near.all():
        raise Incomparable(f"{name} differs: {first(a, b, ~near)}")
    return False


def tolerance(dtype: DType) -> float:
    """Return the relative tolerance of an inexact dtype; of the parts for complex numbers."""
    kind = np.dtype(dtype)
    return TOLERANCE[kind.itemsize // (2 if kind.kind == "c" else 1)]


def plain(value: jax.Array | np.ndarray) -> np.ndarray:
    """Return an array as a NumPy array, PRNG keys as their data."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def wide(value: jax.Array | np.ndarray) -> np.ndarray:
    """Return numbers as float64 or complex128."""
    return np.asarray(value).astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def first(expected: np.ndarray, actual: np.ndarray, where: np.ndarray) -> str:
    """Return a message with the first pair of numbers selected by a mask."""
    index = tuple(int(i) for i in np.argwhere(where)[0])
    at = f" at {list(index)}" if index else ""
    return f"{actual[index]} instead of {expected[index]}{at}"


SECOND: Mapping[str, str | int] = {
    "xla_disable_hlo_passes": "dot-library-rewriter",
    "xla_backend_optimization_level": 0,
}
"""Compiler options of the second way.

JAX 0.8.0, 0.10.2 and 0.12.0.1 support them; unknown names of passes are ignored.
"""

_BOUND = 1 / 16
"""Allowed fraction of the bound on the rounding error of a sum, terms times unit roundoff.
Sums of 40,000 f32 terms used a quarter of it.
"""
ROUNDING = 64.0
"""A difference up to this factor times the effect of the inputs' last bits is rounding."""

Function = Callable[..., Sequence[jax.Array]]


class TwoWays:
    """A function of arrays, compiled twice.

    Args:
        function: takes arrays and trees of arrays, returns arrays.
        below: the fraction of the root mean square, as for `agree`.
        terms: an upper bound of the terms of a sum in the function.
    """

    def __init__(self, function: Function, below: float, terms: int) -> None:
        self._below = below
        self._terms = terms
        self.usual = jax.jit(function)
        self.second = jax.jit(function, compiler_options=dict(SECOND))

    def __call__(self, names: Sequence[str], *args: object) -> Sequence[jax.Array]:
        """Return the results of the usual compile.

        Args:
            names: names of the results, for users.
            args: arguments of the function.

        Raises:
            Incomparable: the results of the second way differ.
        """
        usual: Sequence[jax.Array] = self.usual(*args)
        second = self.second(*args)
        for index, (name, usual_array, second_array) in enumerate(
            zip(names, usual, second, strict=True)
        ):
            try:
                agree(name, usual_array, second_array, self._below, self.slack(second_array.dtype))
            except Incomparable as error:
                if self._is_rounding(index, usual_array, second_array, args):
                    continue
                raise Incomparable(f"compiled with other options, {error}") from error
        return usual

    def slack(self, dtype: DType) -> float:
        """Return the allowed difference of the two ways in tolerances.

        Narrow floating-point numbers are summed as f32.
        """
        if not jnp.issubdtype(dtype, jnp.inexact):
            return 1.0
        unit = min(_eps(dtype), _eps(jnp.float32))
        return max(1.0, _BOUND * unit * self._terms / tolerance(dtype))

    def _is_rounding(
        self, index: int, usual_array: jax.Array, second_array: jax.Array, args: object
    ) -> bool:
        """Return whether inputs that differ in their last bits change a result about as much."""
        if plain(usual_array).shape != plain(second_array).shape:
            return False
        moved = self.second(*jax.tree_util.tree_map(shaken, args))[index]
        changed = largest(differences(moved, second_array))
        return (
            changed > 0.0 and largest(differences(usual_array, second_array)) <= ROUNDING * changed
        )


def names_of(count: int) -> list[str]:
    """Return `result 0`, `result 1` and so on."""
    return [f"result {index}" for index in range(count)]


def differences(usual_array: jax.Array, second_array: jax.Array) -> np.ndarray:
    """Return the elementwise distance of two arrays of the same shape, as float64.

    It is 0 if both are NaN or the same infinity.
    """
    a, b = wide(plain(usual_array)), wide(plain(second_array))
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, apart)


def largest(distances: np.ndarray) -> float:
    """Return the largest difference, or infinity if one is not finite."""
    return float(np.max(np.where(np.isfinite(distances), distances, np.inf), initial=0.0))


def shaken(value: jax.Array) -> jax.Array:
    """Return an array with the last bits of its floating-point numbers changed, up and down."""
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return value
    numbers = np.asarray(value)
    signs = 1.0 - 2.0 * (np.arange(numbers.size).reshape(numbers.shape) % 2)
    moved = wide(numbers) * (1.0 + _eps(value.dtype) * signs)
    shaken_array: jax.Array = jax.device_put(moved.astype(numbers.dtype))
    return shaken_array


def _eps(dtype: DType) -> float:
    return float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]
