"""Compares gradients with finite differences along a direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxsight.dataset.rows.directions import Direction, positions
from jaxsight.dataset.schema import PASSED

_STEPS = {"float64": (1e-5, 1e-6), "float32": (1e-2, 1e-3)}
"""Relative steps, the best one first: central differences err least at the cube root of the
rounding error, 6e-6 and 5e-3. Results of fewer bits are too coarse for differences."""

_TOLERANCES = {"float64": 1e-4, "float32": 5e-2}
"""Relative errors, a choice: far above those of the steps, as results add up rounding errors, and
far below those of a wrong term."""

_FEW = 4
"""Elements of an argument that a sparse direction moves, a choice: few meet a jump by chance."""

_SPREAD = 0.2
"""Slopes whose difference is a larger part of the error than this do not converge, a choice: they
differ by the whole error at a jump, and hardly where the gradient is wrong."""

_Doubles: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


_Call: TypeAlias = Callable[[tuple[jax.Array, ...]], list[jax.Array]]
"""A function of flat arrays that returns flat arrays."""


def gradient_problem(
    call: _Call,
    direction: Direction,
    cotangents: Sequence[jax.Array],
    gradients: Sequence[jax.Array],
) -> str:
    """Return `passed`, why gradients were not compared, or `differs: …`.

    The derivative of `sum(cotangent * result)` along a random direction is compared with a central
    difference; one of several steps has to agree.
    Jumps of many elements, such as those of `where(x > 0, x, 1)`, add up to a slope that does not
    depend on the step. So a direction that moves a few elements decides where the first one, which
    moves all of them, does not agree: a jump there makes the differences of two steps disagree
    with each other, and then they say nothing about the gradient.

    Args:
        call: the function of flat arrays.
        direction: its trace and arguments.
        cotangents: of its inexact results.
        gradients: of its inexact arguments, for these cotangents.
    """
    inexact = positions(direction.arguments)
    dtypes = {
        str(np.asarray(value).dtype)
        for value in (*(direction.arguments[at] for at in inexact), *cotangents)
    }
    if not dtypes <= set(_STEPS):
        return f"not compared: {', '.join(sorted(dtypes - set(_STEPS)))}"
    if any(not np.isfinite(np.asarray(gradient)).all() for gradient in gradients):
        return "not compared: not finite"
    kind = "float32" if "float32" in dtypes else "float64"
    value = _value_along(call, direction, cotangents)
    chance = np.random.default_rng(1)
    whole = [chance.normal(size=direction.arguments[at].shape) for at in inexact]
    sparse = [tangent * _few(tangent.size, chance).reshape(tangent.shape) for tangent in whole]
    problem = ""
    for tangents in (whole, sparse):
        parts = [
            np.asarray(gradient, np.float64) * tangent
            for gradient, tangent in zip(gradients, tangents, strict=True)
        ]
        expected = sum(float(np.sum(part)) for part in parts)
        # A tenth of terms that cancel counts, and nothing is compared with exact zeros.
        size = abs(expected) + 0.1 * sum(float(np.sum(np.abs(part))) for part in parts) + 1e-6
        slopes = [
            (value(step, tangents) - value(-step, tangents)) / (2 * step) for step in _STEPS[kind]
        ]
        problem = _problem(slopes, expected, size, _TOLERANCES[kind])
        if problem == PASSED:
            break
    return problem


def _value_along(
    call: _Call, direction: Direction, cotangents: Sequence[jax.Array]
) -> Callable[[float, Sequence[_Doubles]], float]:
    """Return `sum(cotangent * result)` as a function of a step along tangents."""
    inexact = positions(direction.arguments)
    results = positions(direction.program.jaxpr.outvars)

    def value(step: float, tangents: Sequence[_Doubles]) -> float:
        arrays = list(direction.arguments)
        for at, tangent in zip(inexact, tangents, strict=True):
            moved = np.asarray(arrays[at], np.float64) + step * tangent
            arrays[at] = jax.device_put(moved.astype(arrays[at].dtype))
        returned = call(tuple(arrays))
        return sum(
            float(np.sum(np.asarray(returned[at], np.float64) * np.asarray(weight, np.float64)))
            for at, weight in zip(results, cotangents, strict=True)
        )

    return value


def _few(count: int, chance: np.random.Generator) -> _Doubles:
    """Return `count` numbers, `_FEW` of them 1 and the others 0."""
    mask = np.zeros(count)
    mask[chance.permutation(count)[:_FEW]] = 1.0
    return mask


def _problem(slopes: Sequence[float], expected: float, size: float, tolerance: float) -> str:
    """Compare an expected slope with those of several steps, relative to `size`."""
    errors = [abs(slope - expected) / size for slope in slopes]
    if min(errors) <= tolerance:
        return PASSED
    if max(slopes) - min(slopes) > _SPREAD * min(errors) * size:
        return "not compared: finite differences do not converge"
    return f"differs: relative error {min(errors):.1e}"
