"""Compares a program before and after a fix: its results, and the figures of what XLA compiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jaxsight.targets.target import CPU
from jaxsight.tracer.comparison.two_ways import Incomparable, agree
from jaxsight_dataset.program import Program, Record
from jaxsight_dataset.rows.canonical import digests
from jaxsight_dataset.rows.check import SLACK
from jaxsight_dataset.rows.compiling import Executable
from jaxsight_dataset.rows.describe import (
    Rejected,
    attempt,
    compiled,
    finiteness,
    on_cpu,
    origin,
    packed,
    traced,
)
from jaxsight_dataset.rows.directions import Direction, primitives
from jaxsight_dataset.schema import VERSION

_FIGURES = (
    *("kernel_count", "launch_count", "launches_known"),
    *("temp_bytes", "flops", "estimate_seconds"),
)


@dataclass(frozen=True, slots=True)
class _Form:
    """A program before or after a fix, and what its call returned."""

    direction: Direction
    executable: Executable
    results: list[jax.Array]


def compare(before: Program, after: Program) -> Record:
    """Return the columns of a pair that need JAX; with what `check` needs, under `_` names.

    Raises:
        Rejected: one of the two cannot be traced, compiled or run, has results that are not finite,
            or returns something else than the other.
    """
    first, second = _form(before), _form(after)
    finiteness(before, first.results)
    found = digests(first.direction.program)
    found_after = digests(second.direction.program)
    return {
        "schema_version": VERSION,
        "number": before.number,
        "before": before.text,
        "after": after.text,
        "function": before.function,
        "category": before.category,
        "template": before.template,
        "arguments": json.dumps(before.record()["arguments"]),
        "target": CPU,
        "figures_before": _figures(first),
        "figures_after": _figures(second),
        "jaxpr_before": str(first.direction.traced.jaxpr),
        "jaxpr_after": str(second.direction.traced.jaxpr),
        "hlo_before": first.executable.hlo,
        "hlo_after": second.executable.hlo,
        "canonical_digest": found.program,
        "structure_digest": found.structure,
        "after_digest": found_after.program,
        "validation": {"results": agreement(first.results, second.results)},
        **origin(before),
        "_stablehlo": second.executable.stablehlo,
        "_results": packed(first.results),
    }


def _form(program: Program) -> _Form:
    _, direction = traced(program)
    executable = compiled("compile", direction)
    return _Form(direction, executable, attempt("run", lambda: executable(direction.arguments)))


def _figures(form: _Form) -> Record:
    label = on_cpu(form.executable)
    equations = len(primitives(form.direction.program))
    return {"equation_count": equations, **{name: label[name] for name in _FIGURES}}


def agreement(expected: Sequence[jax.Array], results: Sequence[jax.Array]) -> str:
    """Return how results agree.

    Raises:
        Rejected: they do not, or have other types.
    """
    if list(map(_type, expected)) != list(map(_type, results)):
        raise Rejected("other types of results")
    equal = True
    for at, (wanted, result) in enumerate(zip(expected, results, strict=True)):
        try:
            equal &= agree(f"result {at}", wanted, result, 1.0, SLACK)
        except Incomparable as problem:
            raise Rejected("results differ", str(problem)) from problem
    return "equal" if equal else "within rounding"


def _type(array: jax.Array | np.ndarray) -> tuple[str, tuple[int, ...]]:
    return str(array.dtype), array.shape
