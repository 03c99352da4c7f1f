"""Checks a row in another process than the one that described it.

The module is loaded again from its text and run eagerly; its StableHLO is imported again and run
without the optimizations of XLA's backend. Both have to agree with the results of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.dataset.compat import reimport
from jaxsight.dataset.program import Program
from jaxsight.dataset.rows import loading
from jaxsight.dataset.rows.canonical import digests
from jaxsight.dataset.rows.describe import plain, unpacked
from jaxsight.dataset.rows.directions import forward

_UNOPTIMIZED: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}

PASSED = "passed"


def check(program: Program, digest: str, stablehlo: str, results: str) -> dict[str, str]:
    """Return what was found for each check: `passed`, or what is wrong.

    Args:
        program: as it is in the row.
        digest: the canonical digest of the row.
        stablehlo: the row's.
        results: those of the compiled program, as `describe.packed` writes them.
    """
    found: dict[str, str] = {}
    try:
        loaded = loading.load(program)
        arguments = loading.arguments(program)
        direction = forward(loaded.function, arguments)
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        return {"printed": f"raises {type(error).__name__}: {error}"}
    same = digests(direction.program).program == digest
    found["printed"] = PASSED if same else "traces to another program"
    expected = unpacked(results, direction.program.jaxpr.outvars) if same else []
    if same:
        data = [_data(array) for array in direction.arguments]
        found["eager"] = _compared(lambda: jax.tree.leaves(loaded.function(*arguments)), expected)
        found["stablehlo"] = _compared(
            lambda: reimport.run(stablehlo, data, _UNOPTIMIZED), expected
        )
    return found


def _data(array: jax.Array) -> jax.Array:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(array)
    return array


def _compared(run: Callable[[], Sequence[Any]], expected: Sequence[np.ndarray[Any, Any]]) -> str:
    try:
        results = [plain(result) for result in run()]
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        first = str(error).strip().partition("\n")[0]
        return f"raises {type(error).__name__}: {first}"[:300]
    if len(results) != len(expected):
        return f"differs: {len(results)} results of {len(expected)}"
    for at, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if problem := difference(result, wanted):
            return f"differs: result[{at}] {problem}"
    return PASSED


def difference(result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> str:
    """Return how two arrays differ by more than rounding; empty if they do not."""
    if result.shape != wanted.shape or result.dtype != wanted.dtype:
        return f"is {result.dtype}{list(result.shape)} of {wanted.dtype}{list(wanted.shape)}"
    if not jnp.issubdtype(result.dtype, jnp.inexact):
        return "" if np.array_equal(result, wanted) else "has other integers"
    tolerance = float(jnp.finfo(result.dtype).eps) ** 0.5  # type: ignore[no-untyped-call]
    first, second = result.astype(np.complex128), wanted.astype(np.complex128)
    if not np.array_equal(np.isnan(first), np.isnan(second)):
        return "has NaNs elsewhere"
    with np.errstate(all="ignore"):
        errors = np.nan_to_num(np.where(first == second, 0, np.abs(first - second)))
        largest = float(np.nan_to_num(np.abs(second)).max(initial=0)) or 1e-300
    error = float(errors.max(initial=0)) / largest
    return f"by {error:.1e}, relative" if error > tolerance else ""
