"""The registries of rules: which rule writes an equation, by the name of its primitive.

A rule for a single equation yields candidate expressions (`LAX`, `PRETTY`), and one for several
consecutive equations does so in `IDIOMS`; each candidate is proved before it is used. A rule for an
equation with inner programs (`STRUCTURES`, `PRETTY_STRUCTURES`) writes functions for these and
returns the call; `ABSORBS` says which equations before such an equation are part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight_source.compat.jaxpr_types import Aval, Equation, Params, Primitive
from jaxsight_source.equations.idioms import Idioms
from jaxsight_source.jaxprs.base import Rules
from jaxsight_source.proof.prover import Proved


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
