"""The values of a program's equations, jitted and eager; runs in a process of its own.

A prefix of the program is compiled for each equation, so that what comes after it cannot change how
the compiler treats it; calls are inlined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jaxsight.interpreters.compat import dtypes
from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.interpreters.compat.locations import locations
from jaxsight.interpreters.compat.staging import opened
from jaxsight.repro.explaining.nan_places import in_shards
from jaxsight.repro.reducing.equations.candidates import Array, Candidate
from jaxsight.repro.reducing.equations.evaluation import (
    Run,
    arguments_of,
    arrays_of,
    function_of,
)
from jaxsight.repro.reducing.equations.inlining import inlined

ALL = 60
"""Equations up to which programs are compared at each, as each is compiled; others are bisected."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """How the results of an equation differ, if they do.

    Attributes:
        kind: `nan` is only of the jitted ones.
        text: the first elements that differ.
    """

    kind: Literal["", "nan", "nan in both", "value"] = ""
    text: str = ""


def main(file: str, namespace: dict[str, Any], out: str) -> None:
    """Write the comparison of a repro's equations to a file, as JSON."""
    arguments = namespace["inputs"]()
    leaves = jax.tree.leaves(arguments)
    program = opened(jax.make_jaxpr(namespace["main"])(*arguments))
    jaxpr = program.jaxpr
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    values: list[Any] = [*program.consts, *leaves]
    candidate = Candidate(inputs, tuple(values), tuple(jaxpr.eqns), ())
    flat = inlined(candidate, lambda equation: True)
    arrays, equations = arrays_of(flat.arguments), flat.equations
    with jax.disable_jit():
        steps = Run(is_split=False).steps(equations, arguments_of(flat))
        ran = list(steps)

    def compared(index: int) -> Divergence:
        print(json.dumps([index, len(equations)]), flush=True)
        outputs = tuple(equations[index].outvars)
        prefix = replace(flat, equations=equations[: index + 1], outputs=outputs)
        return difference(jax.jit(function_of(prefix))(*arrays), ran[index][1])

    def place(index: int, difference: Divergence) -> Equation:
        is_nan = difference.kind.startswith("nan")
        return in_shards(equations[index], ran[index][0]) if is_nan else equations[index]

    rows = [
        _record(file, place(index, difference), index, difference)
        for index, difference in sorted(_search(len(equations), compared).items())
    ]
    Path(out).write_text(json.dumps({"equations": len(equations), "rows": rows}), "utf-8")


def _search(count: int, compared: Callable[[int], Divergence]) -> dict[int, Divergence]:
    """Compare equations until the first that differs is found."""
    results: dict[int, Divergence] = {}
    if count <= ALL:
        for index in range(count):
            results[index] = compared(index)
            if results[index].kind:
                break
        return results
    low, high = -1, count - 1
    results[high] = compared(high)
    while results[high].kind and high - low > 1:
        middle = (low + high) // 2
        results[middle] = compared(middle)
        if results[middle].kind:
            high = middle
        else:
            low = middle
    return results


def difference(jitted: Sequence[object], eager: Sequence[object]) -> Divergence:
    """Return how the results of an equation differ between jit and eager."""
    pairs = [(_numbers(one), _numbers(other)) for one, other in zip(jitted, eager, strict=True)]
    for one, other in pairs:
        bad = np.isnan(one)
        if bad.any():
            in_both = bool(np.isnan(other)[bad].all())
            return Divergence("nan in both" if in_both else "nan", _shown(one, other, bad))
    for one, other in pairs:
        far = _far(one, other)
        if far.any():
            return Divergence("value", _shown(one, other, far))
    return Divergence()


def _numbers(value: object) -> Array:
    if isinstance(value, jax.Array) and dtypes.is_key(value):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    wide = np.complex128 if np.issubdtype(array.dtype, np.complexfloating) else np.float64
    return array.astype(wide)


def _far(one: Array, other: Array) -> Array:
    """Return where two arrays differ by more than rounding explains."""
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max()) if finite.size else 0.0
    with np.errstate(invalid="ignore"):
        close = np.abs(one - other) <= 1e-3 * scale  # a choice: what rounding adds up to
    far: Array = ~(close | (one == other) | (np.isnan(one) & np.isnan(other)))
    return far


def _shown(one: Array, other: Array, where: Array) -> str:
    place = tuple(int(index) for index in np.argwhere(where)[0])
    at = f" at {list(place)}" if place else ""
    return (
        f"jit {one[place]:.6g}, eager {other[place]:.6g}{at} ({int(where.sum())} of {where.size})"
    )


def _record(file: str, equation: Equation, index: int, difference: Divergence) -> dict[str, object]:
    places = [place for place in locations(equation) if Path(place.file) == Path(file)]
    types = ", ".join(str(var.aval) for var in equation.outvars)
    return {
        "index": index,
        "name": equation.primitive.name,
        "type": types,
        "line": places[0].line if places else 0,
        "kind": difference.kind,
        "text": difference.text,
    }
