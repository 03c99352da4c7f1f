"""The registries of rules: which rule writes an equation, by the name of its primitive.

A rule for a single equation yields candidate expressions (`LAX`, `PRETTY`), and one for several
consecutive equations does so in `IDIOMS`; each candidate is proved before it is used. A rule for an
equation with inner programs (`STRUCTURES`, `PRETTY_STRUCTURES`) writes functions for these and
returns the call; `ABSORBS` says which equations before such an equation are part of it.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsight_source.compat import rule_identity
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Params, Primitive
from jaxsight_source.compat.staging import is_literal, opened
from jaxsight_source.equations.idioms import Idioms, hashable, program_key
from jaxsight_source.errors import Unwritable
from jaxsight_source.jaxprs.base import Rules
from jaxsight_source.jaxprs.same.tokens import value_token
from jaxsight_source.proof.prover import Claim, Proved
from jaxsight_source.text.exprs import call, slot
from jaxsight_source.values import scalars


@dataclass(frozen=True, slots=True)
class View:
    """An equation whose operands are slots, or literals in one of their spellings."""

    primitive: Primitive
    params: Params
    operands: tuple[ast.expr, ...]
    inputs: tuple[Aval, ...]
    """Abstract values of the operands."""
    outputs: tuple[Aval, ...]
    literals: tuple[object, ...]
    """For each operand, its value if it is a literal, else None."""

    @property
    def name(self) -> str:
        return str(self.primitive.name)


Spelling = Callable[[View], Iterator[ast.expr]]
"""A rule for one equation: yields candidate expressions, the best one first.

Each is proved before it is used, so a rule may be speculative: candidates that are wrong, or do not
exist in this version of JAX, are skipped. It may raise `Unwritable`.
"""

LAX: Rules[Spelling] = Rules()
"""Explicit spellings, mostly through `jax.lax`."""

PRETTY: Rules[Spelling] = Rules()
"""Spellings as people write them; tried first in the pretty style."""

IDIOMS = Idioms()
"""Spellings of consecutive equations as one expression."""

Structure = Callable[[Any, Any], Proved | None]
"""A rule for an equation with inner programs, given the `writing.scope.Scope` that it is in.

The slots of the returned expression are filled; None leaves the equation to other rules.
"""

STRUCTURES: Rules[Structure] = Rules()

PRETTY_STRUCTURES: Rules[Structure] = Rules()
"""The same for the pretty style, tried first. The whole text is compared at the end."""

Absorb = Callable[[Sequence[Equation], int, Callable[[object], int]], int]
"""Returns how many equations from a position on belong together (1: only this one), given how often
each variable is used. The structure rule of the last equation receives all of them.
"""

ABSORBS: Rules[Absorb] = Rules()


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

    inputs = [Binder(atom.aval) for atom in equation.invars if not is_literal(atom)]
    substitute = iter(inputs)
    stand_ins = [atom if is_literal(atom) else next(substitute) for atom in equation.invars]
    return view_of, Claim([equation.replace(invars=stand_ins)], inputs, equation.outvars)


@dataclass(eq=False, slots=True)
class Binder:
    """A variable in place of a literal, or of an operand: one that is used twice then has two."""

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
