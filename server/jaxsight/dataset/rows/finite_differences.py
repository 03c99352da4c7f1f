"""Compares gradients with finite differences along a direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsight.dataset.rows.directions import Direction, positions

_STEPS = {"float64": (1e-5, 1e-6), "float32": (1e-2, 1e-3)}
"""Relative steps, the best one first; results of fewer bits are too coarse for differences."""

_TOLERANCES = {"float64": 1e-4, "float32": 5e-2}


def gradient_problem(
    call: Callable[[tuple[Any, ...]], list[Any]],
    direction: Direction,
    cotangents: Sequence[Any],
    gradients: Sequence[Any],
) -> str:
    """Return `passed`, why gradients were not compared, or `differs: …`.

    The derivative of `sum(cotangent * result)` along a random direction is compared with a central
    difference; one of several steps has to agree.

    Args:
        call: the function of flat arrays.
        direction: its trace and arguments.
        cotangents: of its inexact results.
        gradients: of its inexact arguments, for these cotangents.
    """
    inexact = positions(direction.arguments)
    results = positions(direction.program.jaxpr.outvars)
    every = [*(direction.arguments[at] for at in inexact), *cotangents]
    dtypes = {str(np.asarray(value).dtype) for value in every}
    if not dtypes <= set(_STEPS):
        return f"not compared: {', '.join(sorted(dtypes - set(_STEPS)))}"
    if any(not np.isfinite(np.asarray(gradient)).all() for gradient in gradients):
        return "not compared: not finite"
    kind = "float32" if "float32" in dtypes else "float64"
    chance = np.random.default_rng(1)
    tangents = [chance.normal(size=direction.arguments[at].shape) for at in inexact]
    expected = sum(
        float(np.sum(np.asarray(gradient, np.float64) * tangent))
        for gradient, tangent in zip(gradients, tangents, strict=True)
    )
    scale = sum(
        float(np.sum(np.abs(np.asarray(gradient, np.float64) * tangent)))
        for gradient, tangent in zip(gradients, tangents, strict=True)
    )

    def value(step: float) -> float:
        arrays = list(direction.arguments)
        for at, tangent in zip(inexact, tangents, strict=True):
            moved = np.asarray(arrays[at], np.float64) + step * tangent
            arrays[at] = jnp.asarray(moved.astype(arrays[at].dtype))
        returned = call(tuple(arrays))
        return sum(
            float(np.sum(np.asarray(returned[at], np.float64) * np.asarray(weight, np.float64)))
            for at, weight in zip(results, cotangents, strict=True)
        )

    errors = []
    for step in _STEPS[kind]:
        measured = (value(step) - value(-step)) / (2 * step)
        errors.append(abs(measured - expected) / (abs(expected) + 0.1 * scale + 1e-6))
        if errors[-1] <= _TOLERANCES[kind]:
            return "passed"
    return f"differs: relative error {min(errors):.1e}"
