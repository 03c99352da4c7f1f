"""Checks a row in another process than the one that described it.

The module is loaded again from its text and run eagerly; its StableHLO is parsed again, and run
where another code path of XLA compiles something else. Both have to agree with the results of the
row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.comparison.two_ways import (
    ROUNDING,
    SECOND,
    Incomparable,
    agree,
    differences,
    largest,
    plain,
    shaken,
    tolerance,
)
from jaxsight_dataset.compat import code_paths, eager, reimport
from jaxsight_dataset.program import RowProgram
from jaxsight_dataset.rows import loading, one_device
from jaxsight_dataset.rows.canonical import digests
from jaxsight_dataset.rows.describe import unpacked
from jaxsight_dataset.rows.directions import Direction, equations, forward
from jaxsight_dataset.rows.numpy_operations import OPERATIONS
from jaxsight_dataset.schema import LONGEST, NOT_COMPARED, PASSED

_OPTIONS: dict[str, str | bool] = {name: str(value) for name, value in SECOND.items()}
"""Options of StableHLO, beside the flags of the process; see `compat.code_paths`."""

SLACK = 8.0
"""A factor of the tolerance, a choice: with less, rounding errors that many operations add up to
count as disagreements; with more, results with a wrong digit agree."""


def check(
    program: RowProgram, digest: str, stablehlo: str, hlo: str, results: str
) -> dict[str, str]:
    """Return the outcome of each check: `passed`, why nothing was compared, or what is wrong.

    Args:
        program: as it is in the row.
        digest: the canonical digest of the row.
        stablehlo: the row's.
        hlo: what the row's StableHLO is compiled to.
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

    spans = program.category == "distributed"

    def eagerly(arguments: tuple[object, ...]) -> list[jax.Array]:
        if spans:
            return one_device.run(loaded.function, arguments)
        return jax.tree.leaves(loaded.function(*arguments))

    def in_numpy() -> list[jax.Array]:
        with eager.replaced(OPERATIONS):
            return eagerly(arguments)

    comparison = ResultComparison(unpacked(results), coarsest(direction), eagerly, arguments)
    outcome = comparison.outcome(in_numpy)
    if outcome != PASSED:  # results that are nothing but rounding errors are NumPy's own
        outcome = comparison.outcome(lambda: eagerly(arguments))
    reimported = _parsed(stablehlo)
    if spans:
        eager_here = f"{NOT_COMPARED}: it spans several devices"
        outcomes = {"eager": eager_here, "one_device": outcome, "stablehlo": reimported}
        return {"printed": PASSED, **outcomes}
    if reimported == PASSED and code_paths.differ(hlo):
        reimported = _run_otherwise(stablehlo, direction, comparison)
    return {"printed": PASSED, "eager": outcome, "stablehlo": reimported}


def _parsed(stablehlo: str) -> str:
    """Return the outcome of parsing StableHLO: what is parsed has to print as the same text."""
    try:
        printed = reimport.printed(stablehlo)
    except Exception as error:  # noqa: BLE001 - MLIR's, about any text
        return f"cannot be parsed: {error}"[:LONGEST]
    return PASSED if printed == stablehlo else "differs: it prints as another text"


def _run_otherwise(stablehlo: str, direction: Direction, comparison: ResultComparison) -> str:
    """Return the outcome of running StableHLO on the other code path."""
    if "python_cpu_callback" in stablehlo:
        return f"{NOT_COMPARED}: it calls Python back"  # at an address in another process
    data = [
        jax.random.key_data(array) if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array
        for array in direction.arguments
    ]
    return comparison.outcome(lambda: reimport.run(stablehlo, data, _OPTIONS))


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
