"""Compares gradients with finite differences along several directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_dataset.rows.directions import Direction, equations, positions
from jaxsight_dataset.schema import PASSED
from jaxsight_source.compat.jaxpr_types import DType

_STEPS = {"float64": (1e-5, 1e-6), "float32": (1e-2, 1e-3)}
"""Relative steps, the best one first: central differences err least at the cube root of the
rounding error, 6e-6 and 5e-3. Results of fewer bits are too coarse for differences."""

_TOLERANCES = {"float64": 1e-4, "float32": 5e-2}
"""Relative errors, a choice: far above those of the steps, as results add up rounding errors, and
far below those of a wrong term."""

_FEW, _SPARSE = 4, 6
"""Elements of an argument that a sparse direction moves, and sparse directions at most: choices.
Few elements meet a jump by chance. Directions move different elements, so an error of a single one
is found in arguments of up to 24 elements."""

_SPREAD = 0.2
"""Slopes whose difference is a larger part of the error than this do not converge, a choice: they
differ by the whole error at a jump, and hardly where the gradient is wrong."""

_ROUNDING = 8.0
"""Rounding errors of results in a slope, a choice: results of many operations have several."""

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

    The derivative of `sum(cotangent * result)` along random directions is compared with central
    differences; one of several steps has to agree.
    One direction moves all elements. Where it disagrees, that may be due to jumps of many elements,
    such as those of `where(x > 0, x, 1)`, which add up to a slope that does not depend on the step.
    So directions that move a few elements decide, none of which may disagree: a jump there makes
    the differences of two steps disagree with each other, and then they say nothing about the
    gradient.

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
    width = "float32" if "float32" in dtypes else "float64"
    terms, precision = _terms_along(call, direction, cotangents), _precision(direction)
    chance = np.random.default_rng(1)
    whole = [chance.normal(size=direction.arguments[at].shape) for at in inexact]
    doubles = [np.asarray(gradient, np.float64) for gradient in gradients]
    outcome = _outcome(terms, whole, doubles, width, precision)
    orders = [chance.permutation(tangent.size) for tangent in whole]
    most = max(order.size for order in orders)
    outcomes = []
    for start in range(0, max(1, min(most, _SPARSE * _FEW)), _FEW):
        sparse = [_few(*both, start) for both in zip(whole, orders, strict=True)]
        outcomes.append(_outcome(terms, sparse, doubles, width, precision))
        if outcomes[-1].startswith("differs"):
            return outcomes[-1]
    return PASSED if PASSED in (outcome, *outcomes) else outcomes[0]


def _terms_along(
    call: _Call, direction: Direction, cotangents: Sequence[jax.Array]
) -> Callable[[float, Sequence[_Doubles]], _Doubles]:
    """Return all `cotangent * result`, flat, as a function of a step along tangents."""
    inexact = positions(direction.arguments)
    results = positions(direction.program.jaxpr.outvars)
    weights = [np.asarray(weight, np.float64) for weight in cotangents]

    def terms(step: float, tangents: Sequence[_Doubles]) -> _Doubles:
        arrays = list(direction.arguments)
        for at, tangent in zip(inexact, tangents, strict=True):
            moved = np.asarray(arrays[at], np.float64) + step * tangent
            arrays[at] = jax.device_put(moved.astype(arrays[at].dtype))
        returned = call(tuple(arrays))
        products = (
            np.ravel(np.asarray(returned[at], np.float64) * weight)
            for at, weight in zip(results, weights, strict=True)
        )
        return np.concatenate(list(products))

    return terms


def _precision(direction: Direction) -> float:
    """Return the relative error of the least precise values of a program."""
    precisions = [0.0]
    for equation in equations(direction.program):
        if equation.primitive.name == "reduce_precision":
            precisions.append(2.0 ** -equation.params["mantissa_bits"])
        for variable in equation.outvars:
            dtype = getattr(variable.aval, "dtype", np.dtype(int))
            if jnp.issubdtype(dtype, jnp.inexact):
                precisions.append(_unit(dtype))
    return max(precisions)


def _unit(dtype: DType) -> float:
    return float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _few(tangent: _Doubles, order: np.ndarray, start: int) -> _Doubles:
    """Return the signs of the `_FEW` elements at `start` in an order, and zeros elsewhere."""
    some = np.zeros(tangent.size)
    chosen = np.arange(start, start + _FEW) % max(order.size, 1)
    moved = order[chosen[: order.size]]
    some[moved] = np.sign(tangent.ravel()[moved])  # of equal weight
    return some.reshape(tangent.shape)


def _outcome(
    terms: Callable[[float, Sequence[_Doubles]], _Doubles],
    tangents: Sequence[_Doubles],
    gradients: Sequence[_Doubles],
    width: str,
    precision: float,
) -> str:
    """Compare the expected slope along tangents with those of several steps."""
    parts = [np.ravel(each * tangent) for each, tangent in zip(gradients, tangents, strict=True)]
    expected = sum(float(np.sum(part)) for part in parts)
    # A tenth of terms that cancel counts, and nothing is compared with exact zeros.
    size = abs(expected) + 0.1 * sum(float(np.sum(np.abs(part))) for part in parts) + 1e-6
    here = terms(0.0, tangents)
    noise = _ROUNDING * precision * float(np.linalg.norm(here))
    slopes, errors = [], []
    for step in _STEPS[width]:
        ahead, behind = terms(step, tangents), terms(-step, tangents)
        slopes.append(float(np.sum(ahead - behind)) / (2 * step))
        errors.append(abs(slopes[-1] - expected) / size)
        if errors[-1] <= _TOLERANCES[width]:
            return PASSED
    if min(errors) * size <= noise / (2 * min(_STEPS[width])):
        return "not compared: finite differences are rounding errors"
    sides = sorted(
        float(np.sum(far - near)) / step for far, near in ((ahead, here), (here, behind))
    )
    is_kink = sides[0] <= expected <= sides[1]  # any number between is a subgradient
    if is_kink or max(slopes) - min(slopes) > _SPREAD * min(errors) * size:
        return "not compared: finite differences do not converge"
    return f"differs: relative error {min(errors):.1e}"
