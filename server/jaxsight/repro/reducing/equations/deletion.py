"""Deletes equations: what others need of them becomes an input, with the value that it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jaxsight.interpreters.compat import avals
from jaxsight.interpreters.compat.jaxpr_types import Atom
from jaxsight.interpreters.compat.staging import is_literal
from jaxsight.repro.reducing.checker import Checker
from jaxsight.repro.reducing.equations.candidates import (
    Candidate,
    Value,
    cones,
    cut,
    pruned,
    replaced,
)
from jaxsight.repro.reducing.equations.recording import Recorded

_MOST_ALONE = 64
"""The number of outputs up to which each is tried alone."""


def trim(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Drop equations at the end, and those that the last one does not need.

    What is left runs on the same arguments, so no values need to be known.
    """
    if not candidate.equations:
        return candidate
    candidate = _prefix(candidate, checker, {})
    last = cones(candidate, candidate.equations[-1].outvars)
    return checker.first(cut(candidate, cone, {}) for cone in last[-1:]) or candidate


def delete(candidate: Candidate, checker: Checker[Candidate], recorded: Recorded) -> Candidate:
    """Return a candidate from which no single equation can be deleted."""
    candidate = _around_suspects(candidate, checker, recorded)
    candidate = _one_result(candidate, checker, recorded)
    if len(candidate.equations) > 8:
        candidate = _prefix(candidate, checker, recorded.values)
        candidate = _suffix(candidate, checker, recorded)
    size = max(len(candidate.equations) // 4, 1)
    while True:
        smaller = _sweep(candidate, size, checker, recorded)
        if size == 1 and smaller is candidate:
            return candidate
        candidate = smaller
        size = max(min(size // 2, len(candidate.equations) // 2), 1)


def _around_suspects(
    candidate: Candidate, checker: Checker[Candidate], recorded: Recorded
) -> Candidate:
    """Try the equations at which something went wrong, with more and more of what they read."""
    producers = {
        id(var): index
        for index, equation in enumerate(candidate.equations)
        for var in equation.outvars
    }
    windows: list[list[int]] = []
    for suspect in recorded.suspects[:2]:
        kept = {suspect}
        for depth in range(6):
            windows.append(sorted(kept))
            frontier = list(kept)
            for index in frontier:
                for atom in candidate.equations[index].invars:
                    if not is_literal(atom) and id(atom) in producers:
                        kept.add(producers[id(atom)])
            if len(kept) == len(frontier) or (depth > 1 and len(kept) > 40):
                break
    windows = [window for window in windows if len(window) < len(candidate.equations)]
    tries = (cut(candidate, window, recorded.values) for window in windows)
    return checker.first(tries) or candidate


def _one_result(candidate: Candidate, checker: Checker[Candidate], recorded: Recorded) -> Candidate:
    """Try each output alone, the ones that need the fewest equations first.

    All tries together have about as many equations as the candidate twice.
    """
    if "result[" not in checker.settings.expected.message:
        return candidate
    tries: list[list[int]] = []
    remaining = 2 * len(candidate.equations)
    for cone in cones(candidate, candidate.outputs):
        remaining -= len(cone)
        if remaining < 0 or len(cone) == len(candidate.equations):
            break
        tries.append(cone)
    return checker.first(cut(candidate, cone, recorded.values) for cone in tries) or candidate


def _prefix(
    candidate: Candidate, checker: Checker[Candidate], values: Mapping[int, Value]
) -> Candidate:
    """Drop equations at the end, as many as possible, by search in three parts."""
    low, high = 0, len(candidate.equations)  # `low` equations do not suffice, `high` do
    whole = candidate
    while high - low > 1:
        points = _points(low, high)
        found = checker.first(cut(whole, range(end), values) for end in points)
        if found is None:
            low = points[-1]
        else:
            reached = points.index(len(found.equations))
            low = points[reached - 1] if reached else low
            high, candidate = points[reached], found
    return candidate


def _suffix(candidate: Candidate, checker: Checker[Candidate], recorded: Recorded) -> Candidate:
    """Drop equations at the beginning, as many as possible."""
    low, high = 0, len(candidate.equations)
    whole, count = candidate, len(candidate.equations)
    while high - low > 1:
        points = _points(low, high)
        found = checker.first(
            cut(whole, range(count - end, count), recorded.values) for end in points
        )
        if found is None:
            low = points[-1]
        else:
            reached = points.index(len(found.equations))
            low = points[reached - 1] if reached else low
            high, candidate = points[reached], found
    return candidate


def _points(low: int, high: int) -> list[int]:
    """Return two sizes between `low` and `high`, smaller first; one if there are no two."""
    third = (high - low) // 3
    return sorted({low + max(third, 1), max(high - max(third, 1), low + 1)})


def _sweep(
    candidate: Candidate, size: int, checker: Checker[Candidate], recorded: Recorded
) -> Candidate:
    """Try to delete each run of `size` equations, the last ones first."""
    end = len(candidate.equations)
    while end > 0:
        positions: dict[int, int] = {}
        found = checker.first(_runs(candidate, size, end, recorded, positions))
        if found is None:
            return candidate
        end = max(positions[id(found)] - size, 0)
        candidate = found
    return candidate


def _runs(
    candidate: Candidate, size: int, end: int, recorded: Recorded, positions: dict[int, int]
) -> Iterator[Candidate | None]:
    """Yield the candidate without each run of equations before `end`; store its position."""
    kept_alive: list[Candidate] = []
    while end > 0:
        kept = _without(candidate, max(end - size, 0), end)
        smaller = cut(candidate, kept, recorded.values) if kept else None
        if smaller is not None:
            kept_alive.append(smaller)
            positions[id(smaller)] = end
            yield smaller
        end -= size


def _without(candidate: Candidate, start: int, end: int) -> list[int]:
    return [*range(start), *range(end, len(candidate.equations))]


def bypass(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Replace results of equations by operands of the same type, where that suffices."""
    while True:
        smaller = checker.first(_bypassed(candidate))
        if smaller is None:
            return candidate
        candidate = smaller


def _bypassed(candidate: Candidate) -> Iterator[Candidate]:
    produced = {id(var) for equation in candidate.equations for var in equation.outvars}
    for index in reversed(range(len(candidate.equations))):
        equation = candidate.equations[index]
        if len(equation.outvars) != 1:
            continue
        (result,) = equation.outvars
        rest = (*candidate.equations[:index], *candidate.equations[index + 1 :])
        for atom in equation.invars:
            if is_literal(atom) or avals.text(atom.aval) != avals.text(result.aval):
                continue
            outputs = tuple(
                atom if each is result else each
                for each in candidate.outputs
                if each is not result or id(atom) in produced
            )
            if rest and outputs:
                without = replace(candidate, equations=rest, outputs=outputs, eager={})
                yield replaced(without, {id(result): atom})


def drop_outputs(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Return a candidate with as few outputs as possible."""
    while len(candidate.outputs) > 1:
        outputs = candidate.outputs
        tries: list[tuple[Atom, ...]] = []
        if len(outputs) <= _MOST_ALONE:
            tries += [(output,) for output in outputs]
        half = len(outputs) // 2
        tries += [outputs[:half], outputs[half:]]
        tries += [(*outputs[:index], *outputs[index + 1 :]) for index in range(len(outputs))]
        found = checker.first(pruned(replace(candidate, outputs=kept)) for kept in tries)
        if found is None:
            return candidate
        candidate = found
    return candidate
