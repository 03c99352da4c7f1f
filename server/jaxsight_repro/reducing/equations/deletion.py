"""Deletes equations: what others need of them becomes an input, with the value that it had."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import (
    Keys,
    Shrunk,
    Value,
    cheaper,
    cones,
    cut,
    pruned,
    reads,
    replaced,
    value_digest,
)
from jaxsight_repro.reducing.equations.recording import Recorded
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Atom
from jaxsight_source.compat.staging import is_literal, new_literal

_MOST_ALONE = 64
"""The number of outputs up to which each is tried alone: beyond it, halves are tried first."""


def trim(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Drop equations at the end, and those that the last one does not need.

    What is left runs on the same arguments, so no values need to be known.
    """
    if not candidate.equations:
        return candidate
    whole = candidate
    candidate = _fewest(candidate, checker, lambda size: cut(whole, range(size), {}))
    last = cones(candidate, candidate.equations[-1].outvars)
    return checker.first(cut(candidate, cone, {}) for cone in last[-1:]) or candidate


def delete(candidate: Shrunk, checker: Checker[Shrunk], recorded: Recorded) -> Shrunk:
    """Return a candidate from which no single equation can be deleted."""
    candidate = _around_suspects(candidate, checker, recorded)
    candidate = _one_result(candidate, checker, recorded)
    if len(candidate.equations) > 8:  # of fewer, each is tried soon
        whole, values = candidate, recorded.values
        candidate = _fewest(whole, checker, lambda size: cut(whole, range(size), values))
        count, rest = len(candidate.equations), candidate
        candidate = _fewest(
            rest, checker, lambda size: cut(rest, range(count - size, count), values)
        )
    size = max(len(candidate.equations) // 4, 1)
    while True:
        runs = partial(_runs, size=size, values=recorded.values)
        smaller = checker.swept(candidate, runs)
        if size == 1 and smaller is candidate:
            return candidate
        candidate = smaller
        size = max(min(size // 2, len(candidate.equations) // 2), 1)


def _around_suspects(candidate: Shrunk, checker: Checker[Shrunk], recorded: Recorded) -> Shrunk:
    """Try the equations at which something went wrong, with more and more of what they read."""
    producers = candidate.producers
    windows: list[list[int]] = []
    for suspect in recorded.suspects[:2]:
        kept = {suspect}
        for depth in range(6):  # more are no window, but most of the program
            windows.append(sorted(kept))
            before = len(kept)
            read = reads(candidate.equations[index] for index in kept)
            kept |= {producers[key] for key in read if key in producers}
            if len(kept) == before or (depth > 1 and len(kept) > 40):
                break
    windows = [window for window in windows if len(window) < len(candidate.equations)]
    tries = (cut(candidate, window, recorded.values) for window in windows)
    return checker.first(tries) or candidate


def _one_result(candidate: Shrunk, checker: Checker[Shrunk], recorded: Recorded) -> Shrunk:
    """Try each output alone, the ones that need the fewest equations first.

    All tries together have about as many equations as the candidate twice.
    """
    if "result[" not in checker.expected.message:
        return candidate
    tries: list[list[int]] = []
    remaining = 2 * len(candidate.equations)
    for cone in cones(candidate, candidate.outputs):
        remaining -= len(cone)
        if remaining < 0 or len(cone) == len(candidate.equations):
            break
        tries.append(cone)
    return checker.first(cut(candidate, cone, recorded.values) for cone in tries) or candidate


def _fewest(
    candidate: Shrunk, checker: Checker[Shrunk], of_size: Callable[[int], Shrunk | None]
) -> Shrunk:
    """Return the program with the fewest equations that suffice, by search in three parts.

    `of_size` returns the program of that many of the candidate's equations.
    """
    low, high = 0, len(candidate.equations)  # `low` equations do not suffice, `high` do
    while high - low > 1:
        third = max((high - low) // 3, 1)
        sizes = sorted({low + third, max(high - third, low + 1)})
        found = checker.first(map(of_size, sizes))
        if found is None:
            low = sizes[-1]
        else:
            reached = sizes.index(len(found.equations))
            low = sizes[reached - 1] if reached else low
            high, candidate = sizes[reached], found
    return candidate


def _runs(
    candidate: Shrunk, size: int, values: Mapping[int, Value]
) -> Iterator[Callable[[], Shrunk | None]]:
    """Yield what makes the candidate without each run of `size` equations, the last ones first."""
    count = len(candidate.equations)
    for end in range(count, 0, -size):
        if kept := [*range(max(end - size, 0)), *range(end, count)]:
            yield partial(cut, candidate, kept, values)


def bypass(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Replace results of equations by operands of the same type, where that suffices."""
    return checker.exhausted(candidate, _bypassed)


def _bypassed(candidate: Shrunk) -> Iterator[Shrunk]:
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


def drop_outputs(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
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


def simplify(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return a candidate with simpler arguments."""
    for tries in (_together, _merged, _constants):
        candidate = checker.exhausted(candidate, tries)
    position = 0
    while position < len(candidate.arguments):
        around = candidate.arguments[:position], candidate.arguments[position + 1 :]
        changed = (
            replace(candidate, arguments=(*around[0], value, *around[1]), eager={})
            for value in _simpler(candidate.arguments[position])
        )
        candidate = checker.first(cheaper(candidate, changed)) or candidate
        position += 1
    return candidate


def _simpler(value: Value) -> Iterator[Value]:
    """Yield simpler values in place of one, the simplest first."""
    if isinstance(value, Keys):
        if value.data.any():
            yield Keys(np.zeros_like(value.data), value.impl)
        return
    yield np.zeros_like(value)
    yield np.ones_like(value)
    if value.dtype.kind == "b" or not value.size:
        return
    if value.shape:
        yield np.arange(value.size).reshape(value.shape).astype(value.dtype)
        if value.ndim > 1:
            column = np.arange(len(value)).reshape(-1, *[1] * (value.ndim - 1))
            yield np.broadcast_to(column.astype(value.dtype), value.shape)
            yield np.broadcast_to(np.arange(value.shape[-1]).astype(value.dtype), value.shape)
    if value.dtype.kind in "fiuV":
        numbers = np.nan_to_num(value.astype(np.float64), posinf=1e300, neginf=-1e300)
        first = numbers.flat[0]
        power = np.ceil(np.log2(max(abs(first), 1.0)))
        for number in (-1, np.round(first), np.sign(first) * 2.0**power, first):
            if number >= 0 or value.dtype.kind != "u":
                with np.errstate(all="ignore"):
                    filled = np.full_like(value, np.asarray(number).astype(value.dtype))
                yield filled
        largest = float(np.abs(numbers).max()) or 1.0
        for scale in (1.0, 0.1, 0.01, largest / 8, largest / 256):
            with np.errstate(all="ignore"):
                rounded = (np.round(numbers / scale) * scale).astype(value.dtype)
            yield rounded


def _together(candidate: Shrunk) -> Iterator[Shrunk | None]:
    """Replace all arguments at once, each in the same way."""
    options = [list(_simpler(value)) for value in candidate.arguments]
    for way in range(min(max(map(len, options), default=0), 3)):
        pairs = zip(options, candidate.arguments, strict=True)
        arguments = tuple(ways[way] if way < len(ways) else value for ways, value in pairs)
        yield from cheaper(candidate, [replace(candidate, arguments=arguments, eager={})])


def _merged(candidate: Shrunk) -> Iterator[Shrunk | None]:
    """Make inputs of the same type one, if they have the same value."""
    first: dict[tuple[str, str], Atom] = {}
    replacements: dict[int, Atom] = {}
    for var, value in zip(candidate.inputs, candidate.arguments, strict=True):
        key = avals.text(var.aval), value_digest(value)
        original = first.setdefault(key, var)
        if original is not var:
            replacements[id(var)] = original
    if replacements:
        yield replaced(candidate, replacements)


def _constants(candidate: Shrunk) -> Iterator[Shrunk | None]:
    """Write scalars into the program: all of them, or one."""
    literals: dict[int, Atom] = {}
    for var, value in zip(candidate.inputs, candidate.arguments, strict=True):
        if not isinstance(value, Keys) and value.shape == () and value.dtype.kind in "fiub":
            literals[id(var)] = new_literal(value[()], var.aval)
    if len(literals) == len(candidate.inputs):
        literals.pop(next(iter(literals), 0), None)  # a program without inputs is folded
    if not literals:
        return
    yield replaced(candidate, literals)
    if len(literals) > 1:
        for key, literal in literals.items():
            yield replaced(candidate, {key: literal})
