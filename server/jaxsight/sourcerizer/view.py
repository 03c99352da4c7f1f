"""An equation as rules see it: operands as expressions, parameters, abstract values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight.interpreters.base import Rules
from jaxsight.sourcerizer.exprs import Expr


@dataclass(frozen=True, slots=True)
class View:
    """An equation whose operands are slots, or literals in one of their spellings."""

    primitive: Any
    params: dict[str, Any]
    operands: tuple[Expr, ...]
    inputs: tuple[Any, ...]
    """Abstract values of the operands."""
    outputs: tuple[Any, ...]
    literals: tuple[Any, ...]
    """For each operand its value where it is a literal, else None."""

    @property
    def name(self) -> str:
        return str(self.primitive.name)


Spelling = Callable[[View], Iterator[Expr]]
"""A rule for one equation: its candidate expressions, the best one first.

Each is proved before it is used, so a rule may be hopeful: what is wrong, or does not exist in this
version of JAX, is passed over. May raise `spelling.Unwritable`.
"""

LAX: Rules[Spelling] = Rules()
"""Explicit spellings, through `jax.lax` for most."""

PRETTY: Rules[Spelling] = Rules()
"""Spellings that people would write; tried first when the style is pretty."""


def slots(view: View, start: int = 0) -> Sequence[Expr]:
    return view.operands[start:]
