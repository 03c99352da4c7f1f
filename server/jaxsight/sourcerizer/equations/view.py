"""An equation as rules see it: operands as expressions, parameters, abstract values."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.interpreters.compat.jaxpr_types import Aval, Params, Primitive
from jaxsight.sourcerizer.text.exprs import Expr


@dataclass(frozen=True, slots=True)
class View:
    """An equation whose operands are slots, or literals in one of their spellings."""

    primitive: Primitive
    params: Params
    operands: tuple[Expr, ...]
    inputs: tuple[Aval, ...]
    """Abstract values of the operands."""
    outputs: tuple[Aval, ...]
    literals: tuple[object, ...]
    """For each operand, its value if it is a literal, else None."""

    @property
    def name(self) -> str:
        return str(self.primitive.name)
