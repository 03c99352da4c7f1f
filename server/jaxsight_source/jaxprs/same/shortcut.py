"""Recognizes programs that are the same equation by equation, as most are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsight_source.compat.jaxpr_types import Atom, Var
from jaxsight_source.compat.staging import Program, is_jaxpr, is_literal, opened
from jaxsight_source.jaxprs.same.tokens import literal_token
from jaxsight_source.jaxprs.same.values import TRUSTED, package

_COMPARED_BY_EQUALITY = (type(None), bool, int, str, np.dtype)
"""Types whose values are the same if their types are the same and `==` is true."""


def obviously_same(lhs: Program, rhs: Program) -> bool:
    """Return whether two programs are the same equation by equation.

    Return False for those that need a closer look: with constants, effects, parameters that are not
    plain values, or dead code.
    """
    if lhs.consts or rhs.consts or lhs.jaxpr.constvars or rhs.jaxpr.constvars:
        return False
    first, second = lhs.jaxpr, rhs.jaxpr
    counterparts: dict[int, Var] = {}

    def reads_same(lhs_atoms: Sequence[Atom], rhs_atoms: Sequence[Atom]) -> bool:
        if len(lhs_atoms) != len(rhs_atoms):
            return False
        for atom, counterpart in zip(lhs_atoms, rhs_atoms, strict=True):
            # Literals of equal bits are the same, whatever their weak types.
            if counterparts.get(id(atom)) is not counterpart and not (
                is_literal(atom)
                and is_literal(counterpart)
                and literal_token(atom) == literal_token(counterpart)
            ):
                return False
        return True

    def makes_same(lhs_vars: Sequence[Var], rhs_vars: Sequence[Var]) -> bool:
        if len(lhs_vars) != len(rhs_vars) or not _same_types(lhs_vars, rhs_vars):
            return False
        for var, counterpart in zip(lhs_vars, rhs_vars, strict=True):
            counterparts[id(var)] = counterpart
        return True

    return (
        len(first.eqns) == len(second.eqns)
        and makes_same(first.invars, second.invars)
        and all(
            equation.primitive is counterpart.primitive
            and not equation.effects
            and not counterpart.effects
            and (equation.ctx is counterpart.ctx or equation.ctx == counterpart.ctx)
            and reads_same(equation.invars, counterpart.invars)
            and _obviously_equal(equation.params, counterpart.params)
            and makes_same(equation.outvars, counterpart.outvars)
            for equation, counterpart in zip(first.eqns, second.eqns, strict=True)
        )
        and reads_same(first.outvars, second.outvars)
        and _same_types(first.outvars, second.outvars)
    )


def _same_types(lhs: Sequence[Atom], rhs: Sequence[Atom]) -> bool:
    return all(
        atom.aval is counterpart.aval or atom.aval == counterpart.aval
        for atom, counterpart in zip(lhs, rhs, strict=True)
    )


def _obviously_equal(lhs: object, rhs: object) -> bool:
    """Return whether two parameters are identical, or equal and of a type with a trusted `==`."""
    if lhs is rhs:
        return True
    kind = type(lhs)
    if kind is not type(rhs):
        return False
    if kind is tuple and isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return len(lhs) == len(rhs) and all(map(_obviously_equal, lhs, rhs))
    if kind is dict and isinstance(lhs, dict) and isinstance(rhs, dict):
        return lhs.keys() == rhs.keys() and all(
            _obviously_equal(value, rhs[key]) for key, value in lhs.items()
        )
    if is_jaxpr(lhs):
        return obviously_same(opened(lhs), opened(rhs))
    by_equality = issubclass(kind, _COMPARED_BY_EQUALITY) and package(kind) in TRUSTED
    return by_equality and bool(lhs == rhs)
