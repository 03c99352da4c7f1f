"""What has to be proved of an equation's expression, and keys that determine how it is spelled."""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsight_source.compat import rule_identity
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation
from jaxsight_source.compat.staging import is_literal, opened
from jaxsight_source.equations.idioms import hashable, program_key
from jaxsight_source.equations.registry import View
from jaxsight_source.errors import Unwritable
from jaxsight_source.jaxprs.same.tokens import value_token
from jaxsight_source.proof.prover import Claim
from jaxsight_source.text.exprs import call, slot
from jaxsight_source.values import scalars

VARIANTS = 3
"""The number of spellings of literals: Python numbers, numbers with a dtype, arrays."""


def claim_of(equation: Equation) -> tuple[Callable[[int], View], Claim]:
    """Return views of an equation, for each spelling of its literals, and the claim to prove."""
    indices = itertools.count()
    numbers = [None if is_literal(atom) else next(indices) for atom in equation.invars]

    def view_of(variant: int) -> View:
        return View(
            equation.primitive,
            equation.params,
            tuple(
                _literal(atom, variant) if number is None else slot(number)
                for atom, number in zip(equation.invars, numbers, strict=True)
            ),
            tuple(atom.aval for atom in equation.invars),
            tuple(var.aval for var in equation.outvars),
            tuple(atom.val if is_literal(atom) else None for atom in equation.invars),
        )

    inputs = [_Binder(atom.aval) for atom in equation.invars if not is_literal(atom)]
    substitute = iter(inputs)
    stand_ins = [atom if is_literal(atom) else next(substitute) for atom in equation.invars]
    return view_of, Claim([equation.replace(invars=stand_ins)], inputs, equation.outvars)


@dataclass(eq=False, slots=True)
class _Binder:
    """Stands for an operand, so that an operand which is used twice has two."""

    aval: Aval


def _literal(atom: Any, variant: int) -> ast.expr:
    value = np.asarray(atom.val)
    dtype = getattr(atom.aval, "dtype", value.dtype)
    value = value.astype(dtype)
    is_weak = variant == 2 and bool(getattr(atom.aval, "weak_type", False))
    number = scalars.typed(value)
    if variant == 0 or is_weak:
        with contextlib.suppress(Unwritable):
            number = scalars.plain(value)
    return call("jnp.asarray", number) if variant == 2 else number


def equation_key(equation: Equation) -> Hashable:
    """Return a key that is equal for equal equations, or unique if it cannot be hashed."""
    key = spelling_key(equation)
    return id(equation) if key is None else key


def spelling_key(equation: Equation) -> Hashable:
    """Return a key that determines how an equation is spelled, or None if it cannot be hashed."""
    primitive, params = equation.primitive, equation.params
    parameters: object = tuple(params.items())
    if primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        parameters = (program_key(opened(params["call_jaxpr"])), rule_identity.rules_key(params))
        if parameters[0] is None:
            return None
        parameters = (*parameters, params["num_consts"], params["symbolic_zeros"])
    operands = tuple(map(_operand_key, equation.invars))
    return hashable((primitive, parameters, operands, equation.ctx))


def _operand_key(atom: Atom) -> object:
    if not is_literal(atom):
        return atom.aval
    value = atom.val
    if type(value) is float and value and not math.isnan(value):  # -0.0 is equal to 0.0
        return (value, float, atom.aval)
    return (value_token(value), atom.aval)
