"""Checks a row in another process than the one that described it.

The module is loaded again from its text and run eagerly; its StableHLO is imported again and run
on another code path of XLA. Both have to agree with the results of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.dataset.compat import eager, reimport
from jaxsight.dataset.program import Program
from jaxsight.dataset.rows import loading, one_device
from jaxsight.dataset.rows.canonical import digests
from jaxsight.dataset.rows.describe import unpacked
from jaxsight.dataset.rows.directions import Direction, equations, forward
from jaxsight.dataset.rows.numpy_operations import OPERATIONS
from jaxsight.dataset.schema import LONGEST, NOT_COMPARED, PASSED
from jaxsight.tracer.comparison.closeness import Incomparable, agree, plain, tolerance
from jaxsight.tracer.comparison.two_ways import ROUNDING, SECOND, differences, largest, shaken

_OPTIONS: dict[str, str | bool] = {name: str(value) for name, value in SECOND.items()}
"""Options of StableHLO, beside the flags of the process; see `compat.code_paths`."""

SLACK = 8.0
"""A factor of the tolerance, a choice: with less, rounding errors that many operations add up to
count as disagreements; with more, results with a wrong digit agree."""


def check(program: Program, digest: str, stablehlo: str, results: str) -> dict[str, str]:
    """Return the outcome of each check: `passed`, why nothing was compared, or what is wrong.

    Args:
        program: as it is in the row.
        digest: the canonical digest of the row.
        stablehlo: the row's.
        results: those of the compiled program, as `describe.packed` writes them.
    """
    try:
        loaded = loading.load(program)
        arguments = loading.arguments(program)
        direction = forward(loaded.function, arguments)
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        return {"printed": f"raises {type(error).__name__}: {error}"}
    if digests(direction.program).program != digest:
        return {"printed": "traces to another program"}

    def eagerly(arguments: tuple[object, ...]) -> list[jax.Array]:
        return jax.tree.leaves(loaded.function(*arguments))

    def in_numpy() -> list[jax.Array]:
        with eager.replaced(OPERATIONS):
            return eagerly(arguments)

    comparison = ResultComparison(unpacked(results), coarsest(direction), eagerly, arguments)
    is_key = [jnp.issubdtype(each.dtype, jax.dtypes.prng_key) for each in direction.arguments]
    data = [
        jax.random.key_data(array) if of_key else array
        for array, of_key in zip(direction.arguments, is_key, strict=True)
    ]
    reimported = f"{NOT_COMPARED}: it calls Python back"
    outcome = comparison.outcome(in_numpy)
    if outcome != PASSED:  # results that are nothing but rounding errors are NumPy's own
        outcome = comparison.outcome(lambda: eagerly(arguments))
    checks = {"printed": PASSED, "eager": outcome}
    if program.category == "distributed":
        on_one = comparison.outcome(lambda: one_device.run(loaded.function, arguments))
        checks["one_device"] = on_one
        reimported = f"{NOT_COMPARED}: it spans several devices"
    elif "python_cpu_callback" not in stablehlo:  # its address is another process's
        reimported = comparison.outcome(lambda: reimport.run(stablehlo, data, _OPTIONS))
    return {**checks, "stablehlo": reimported}


def coarsest(direction: Direction) -> float:
    """Return the largest tolerance among the dtypes of all values of a program."""
    dtypes = {
        variable.aval.dtype
        for equation in equations(direction.program)
        for variable in equation.outvars
        if hasattr(variable.aval, "dtype") and jnp.issubdtype(variable.aval.dtype, jnp.inexact)
    }
    return max(map(tolerance, dtypes), default=0.0)


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """What results of a program are compared with.

    Attributes:
        expected: the results of the compiled program.
        coarsest: the tolerance of the program's narrowest floating-point dtype.
        eagerly: the program, without `jit`.
        arguments: those of the row.
    """

    expected: Sequence[np.ndarray]
    coarsest: float
    eagerly: Callable[[tuple[object, ...]], list[jax.Array]]
    arguments: tuple[object, ...]

    def outcome(self, run: Callable[[], Sequence[jax.Array]]) -> str:
        """Return the outcome of a check whose results `run` returns."""
        try:
            results = [plain(result) for result in run()]
        except Exception as error:  # noqa: BLE001 - whatever the program raises
            first = str(error).strip().partition("\n")[0]
            if first.startswith("UNIMPLEMENTED"):
                return f"{NOT_COMPARED}: {first}"[:LONGEST]
            return f"raises {type(error).__name__}: {first}"[:LONGEST]
        if len(results) != len(self.expected):
            return f"differs: {len(results)} results of {len(self.expected)}"
        for at, (result, wanted) in enumerate(zip(results, self.expected, strict=True)):
            if result.dtype != wanted.dtype:
                return f"differs: result {at} is {result.dtype} instead of {wanted.dtype}"
            inexact = jnp.issubdtype(result.dtype, jnp.inexact)
            slack = max(1.0, self.coarsest / tolerance(result.dtype)) if inexact else 1.0
            try:
                agree(f"result {at}", wanted, result, 1.0, SLACK * slack)
            except Incomparable as problem:
                if not self._is_rounding(at, result, wanted):
                    return f"differs: {problem}"
        return PASSED

    def _is_rounding(self, at: int, result: Any, wanted: Any) -> bool:
        """Return whether arguments that differ in their last bits change a result about as much."""
        if result.shape != wanted.shape:
            return False
        try:
            moved = self.eagerly(jax.tree.map(shaken, self.arguments))[at]
            usual = self.eagerly(self.arguments)[at]
        except Exception:  # noqa: BLE001 - whatever the program raises
            return False
        changed = largest(differences(moved, usual))
        return changed > 0.0 and largest(differences(result, wanted)) <= ROUNDING * changed
