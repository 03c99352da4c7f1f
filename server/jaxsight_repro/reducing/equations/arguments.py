"""Makes the arguments of a candidate simpler: equal ones are merged, values become rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import (
    Candidate,
    Keys,
    Value,
    cheaper,
    replaced,
    value_digest,
)
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Atom
from jaxsight_source.compat.staging import new_literal


def simplify(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
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


def _together(candidate: Candidate) -> Iterator[Candidate | None]:
    """Replace all arguments at once, each in the same way."""
    options = [list(_simpler(value)) for value in candidate.arguments]
    for way in range(min(max(map(len, options), default=0), 3)):
        pairs = zip(options, candidate.arguments, strict=True)
        arguments = tuple(ways[way] if way < len(ways) else value for ways, value in pairs)
        yield from cheaper(candidate, [replace(candidate, arguments=arguments, eager={})])


def _merged(candidate: Candidate) -> Iterator[Candidate | None]:
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


def _constants(candidate: Candidate) -> Iterator[Candidate | None]:
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
