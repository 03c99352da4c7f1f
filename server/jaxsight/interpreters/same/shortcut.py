"""Recognizes programs that are the same equation by equation, as most are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsight.interpreters.compat.jaxpr_types import Atom, Var
from jaxsight.interpreters.compat.staging import Program, is_jaxpr, is_literal, opened
from jaxsight.interpreters.same.tokens import literal_token
from jaxsight.interpreters.same.values import TRUSTED, package

_COMPARED_BY_EQUALITY = (type(None), bool, int, str, np.dtype)
"""Types whose values are the same if their types are the same and `==` is true."""


def obviously_same(left: Program, right: Program) -> bool:
    """Return whether two programs are the same equation by equation.

    Return False for those that need a closer look: with constants, effects, parameters that are not
    plain values, or dead code.
    """
    if left.consts or right.consts or left.jaxpr.constvars or right.jaxpr.constvars:
        return False
    first, second = left.jaxpr, right.jaxpr
    counterparts: dict[int, Var] = {}

    def reads_same(left_atoms: Sequence[Atom], right_atoms: Sequence[Atom]) -> bool:
        if len(left_atoms) != len(right_atoms):
            return False
        for atom, counterpart in zip(left_atoms, right_atoms, strict=True):
            if counterparts.get(id(atom)) is not counterpart and not _same_literal(
                atom, counterpart
            ):
                return False
        return True

    def makes_same(left_vars: Sequence[Var], right_vars: Sequence[Var]) -> bool:
        if len(left_vars) != len(right_vars):
            return False
        for var, counterpart in zip(left_vars, right_vars, strict=True):
            if var.aval is not counterpart.aval and var.aval != counterpart.aval:
                return False
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
    )


def _same_literal(left: Atom, right: Atom) -> bool:
    if not (is_literal(left) and is_literal(right)) or left.aval != right.aval:
        return False
    return literal_token(left) == literal_token(right)


def _obviously_equal(left: object, right: object) -> bool:
    """Return whether two parameters are identical, or equal and of a type with a trusted `==`."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is tuple and isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_obviously_equal, left, right))
    if kind is dict and isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _obviously_equal(value, right[key]) for key, value in left.items()
        )
    if is_jaxpr(left):
        return obviously_same(opened(left), opened(right))
    by_equality = issubclass(kind, _COMPARED_BY_EQUALITY) and package(kind) in TRUSTED
    return by_equality and bool(left == right)
