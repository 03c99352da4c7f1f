"""What makes two programs the same: digests of jaxprs, up to names, order and values of literals.

A value's digest is made of its primitive, its parameters and the digests of its operands. So the
order of equations, the names of variables, and equations that no result needs have no effect.
"""

from __future__ import annotations

import enum
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Atom
from jaxsight_source.compat.staging import Program, is_jaxpr, is_literal, opened

_COMMUTATIVE = frozenset({"add", "add_any", "and", "eq", "max", "min", "mul", "ne", "or", "xor"})

_NAMES = frozenset({"debug_info", "name", "name_and_src_info"})
"""Parameters that only name something."""

_SHINGLE = 3
"""Consecutive operations of a shingle, a choice: with fewer, more programs look alike; with more,
one change makes all of a short program differ."""

_HASHES = 32  # their share that agrees errs by 0.05 where it is 0.9: √(0.9 · 0.1 / 32)
_PRIME = (1 << 61) - 1  # a Mersenne prime, for universal hashes (Carter and Wegman, 1979)


@dataclass(frozen=True, slots=True)
class ProgramDigests:
    """What identifies a program.

    Attributes:
        program: equal for programs that differ in names, order and literals at most.
        structure: equal for programs that differ in sizes and other numbers, too.
        minhash: as many of its numbers are equal as shingles of operations that two programs share.
    """

    program: str
    structure: str
    minhash: tuple[int, ...]


def digests(program: Program) -> ProgramDigests:
    """Return what identifies a traced program."""
    operations = list(_operations(program))
    starts = range(max(len(operations) - _SHINGLE + 1, 1))
    shingles = {hash_of(tuple(operations[start : start + _SHINGLE])) for start in starts}
    return ProgramDigests(
        _Canonical(with_numbers=True).program(program),
        _Canonical(with_numbers=False).program(program),
        _minhash(shingles),
    )


def hash_of(parts: object) -> int:
    """Return a number of 61 bits that identifies a value with a faithful `repr`."""
    data = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(data, "big") % _PRIME


def _hex(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


class _Canonical:
    """Computes digests; without numbers, shapes and numeric parameters have no effect."""

    def __init__(self, *, with_numbers: bool) -> None:
        self._with_numbers = with_numbers
        self._programs: dict[int, tuple[object, str]] = {}

    def program(self, program: Program) -> str:
        jaxpr = program.jaxpr
        values: dict[int, str] = {}
        for kind, variables in (("argument", jaxpr.invars), ("constant", jaxpr.constvars)):
            for index, variable in enumerate(variables):
                values[id(variable)] = _hex(kind, index, self._type(variable))
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            operands = [self._atom(atom, values) for atom in equation.invars]
            if name in _COMMUTATIVE:
                operands.sort()
            parameters = [
                (key, self._parameter(value))
                for key, value in sorted(equation.params.items())
                if key not in _NAMES and "sharding" not in key
            ]
            digest = _hex(name, parameters, operands)
            for index, variable in enumerate(equation.outvars):
                values[id(variable)] = _hex(digest, index, self._type(variable))
        types = [self._type(variable) for variable in jaxpr.invars]
        return _hex(types, [self._atom(atom, values) for atom in jaxpr.outvars])

    def _atom(self, atom: Atom, values: dict[int, str]) -> str:
        return _hex("literal", self._type(atom)) if is_literal(atom) else values[id(atom)]

    def _type(self, atom: Atom) -> str:
        text = avals.text(atom.aval)
        return text if self._with_numbers else text.partition("[")[0]

    def _parameter(self, value: object) -> object:
        if is_jaxpr(value):
            known = self._programs.get(id(value))
            if known is None:
                known = self._programs[id(value)] = value, self.program(opened(value))
            return known[1]
        match value:
            case bool() | str() | None:
                return value
            case enum.Enum():
                return str(value)
            case int() | float() | complex() | np.number() | np.ndarray():
                return repr(value) if self._with_numbers else type(value).__name__
            case dict():
                return [(str(key), self._parameter(item)) for key, item in value.items()]
            case tuple() | list() if self._with_numbers or any(map(is_jaxpr, value)):
                return [type(value).__name__, *map(self._parameter, value)]
            case np.dtype():
                return str(value)
            case type():
                return value.__name__
        return type(value).__name__


def _operations(program: Program) -> Iterator[str]:
    """Yield the primitive and the first result's dtype of each equation, at all levels."""
    for _, equation in walk(program):
        dtypes = [avals.text(variable.aval).partition("[")[0] for variable in equation.outvars]
        yield ":".join([equation.primitive.name, *dtypes[:1]])


_CHANCE = random.Random("minhash")
_COEFFICIENTS = [(_CHANCE.randrange(1, _PRIME), _CHANCE.randrange(_PRIME)) for _ in range(_HASHES)]


def _minhash(shingles: set[int]) -> tuple[int, ...]:
    """Return the smallest of each of several hashes (Broder, 1997), with 32 bits of each."""
    return tuple(
        min((factor * shingle + offset) % _PRIME for shingle in shingles) >> 29
        for factor, offset in _COEFFICIENTS
    )
