"""Checks a row in another process than the one that described it.

The module is loaded again from its text and run eagerly; its StableHLO is imported again and run
on another code path of XLA. Both have to agree with the results of the row.
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
from jaxsight.dataset.rows.describe import unpacked
from jaxsight.dataset.rows.directions import forward
from jaxsight.tracer.comparison.closeness import Incomparable, agree, plain
from jaxsight.tracer.comparison.two_ways import SECOND

_OPTIONS: dict[str, str | bool] = {name: str(value) for name, value in SECOND.items()}
"""Options of StableHLO, beside the flags of the process; see `compat.code_paths`."""

SLACK = 8.0
"""A factor of the tolerance, for errors that many operations add up to."""

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
    expected = unpacked(results) if same else []
    if same:
        data = [_data(array) for array in direction.arguments]
        found["eager"] = _compared(lambda: jax.tree.leaves(loaded.function(*arguments)), expected)
        found["stablehlo"] = _compared(lambda: reimport.run(stablehlo, data, _OPTIONS), expected)
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
        if result.dtype != wanted.dtype:
            return f"differs: result {at} is {result.dtype} instead of {wanted.dtype}"
        try:
            agree(f"result {at}", wanted, result, 1.0, SLACK)
        except Incomparable as problem:
            return f"differs: {problem}"
    return PASSED
