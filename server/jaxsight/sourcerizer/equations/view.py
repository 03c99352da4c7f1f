"""An equation as rules see it: operands as expressions, parameters, abstract values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
