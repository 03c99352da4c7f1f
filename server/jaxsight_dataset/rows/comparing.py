"""Proves whether programs that were changed are still the program that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax

from jaxsight.tracer.comparison.two_ways import Incomparable, agree
from jaxsight_dataset.program import Record, RowProgram
from jaxsight_dataset.rows import loading
from jaxsight_dataset.rows.canonical import digests
from jaxsight_dataset.rows.check import SLACK
from jaxsight_dataset.rows.describe import Rejected, attempt, compiled, traced

_DRAWS = 3
"""Draws of arguments that results are compared for, a choice: a constant that only matters for some
values is seen in one of three; more cost time."""


def compare(program: RowProgram, others: Sequence[Record], most: int) -> list[Record]:
    """Return which of other modules are proved to be the program, or not, with their proofs.

    Those that can neither be shown to be equal nor different, or cannot be run, are left out.

    Args:
        program: what they were made of.
        others: the `text` of each, and whether it is meant to be the `same`.
        most: how many of both are enough; later ones are not tried.

    Raises:
        Rejected: the program itself cannot be run.
    """
    digest, results = _run(program)
    proved: list[Record] = []
    for other in others:
        if sum(each["same"] == other["same"] for each in proved) == most:
            continue
        try:
            other_digest, other_results = _run(replace(program, text=other["text"]))
            difference = _difference(results, other_results)
        except Rejected:
            continue
        if other["same"] and digest == other_digest and not difference:
            proved.append({**other, "proof": "same jaxpr and results"})
        elif not other["same"] and difference:
            proved.append({**other, "proof": difference})
    return proved


def _run(program: RowProgram) -> tuple[str, list[list[jax.Array]]]:
    """Return the canonical digest of a program, and its results for each draw.

    Raises:
        Rejected: it cannot be loaded, traced, compiled or run.
    """
    _, direction = traced(program)
    executable = compiled("compile", direction)
    draws = [tuple(jax.tree.leaves(loading.arguments(program, draw))) for draw in range(_DRAWS)]
    results = attempt("run", lambda: [executable(draw) for draw in draws])
    return digests(direction.program).program, results


def _difference(expected: list[list[jax.Array]], given: list[list[jax.Array]]) -> str:
    """Return how results differ beyond rounding, empty if they do not."""
    for first, second in zip(expected, given, strict=True):
        if list(map(_type, first)) != list(map(_type, second)):
            return "other types of results"
        for at, (wanted, result) in enumerate(zip(first, second, strict=True)):
            try:
                agree(f"result {at}", wanted, result, 1.0, SLACK)
            except Incomparable:
                return "results differ"
    return ""


def _type(array: jax.Array) -> tuple[str, tuple[int, ...]]:
    return str(array.dtype), array.shape
