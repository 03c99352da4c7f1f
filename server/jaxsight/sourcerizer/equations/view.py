"""An equation as rules see it: operands as expressions, parameters, abstract values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight.interpreters.base import Rules
from jaxsight.sourcerizer.text.exprs import Expr


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
    """For each operand, its value if it is a literal, else None."""

    @property
    def name(self) -> str:
        return str(self.primitive.name)


Spelling = Callable[[View], Iterator[Expr]]
"""A rule for one equation: yields candidate expressions, the best one first.

Each is proved before it is used, so a rule may be speculative: candidates that are wrong, or do not
exist in this version of JAX, are skipped. It may raise `spelling.Unwritable`.
"""

LAX: Rules[Spelling] = Rules()
"""Explicit spellings, mostly through `jax.lax`."""

PRETTY: Rules[Spelling] = Rules()
"""Spellings as people write them; tried first in the pretty style."""


def slots(view: View, start: int = 0) -> Sequence[Expr]:
    return view.operands[start:]
