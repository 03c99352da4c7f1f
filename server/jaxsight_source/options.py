"""The options of the sourcerizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Style = Literal["lax", "pretty"]
STYLES: tuple[Style, ...] = get_args(Style)

Constants = Literal["inline", "npz", "argument"]

Derivatives = Literal["exact", "first", "primal"]
DERIVATIVES: tuple[Derivatives, ...] = get_args(Derivatives)

DEEPEST_RULES = 3
"""The depth of nested derivative rules up to which they are traced, compared and written. Rules of
some functions (`odeint`) nest without end, each larger than the one around it."""

_CHOICES = {
    "style": STYLES,
    "constants": get_args(Constants),
    "derivatives": DERIVATIVES,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options, which `api.sourcerize` explains."""

    style: Style = "lax"
    constants: Constants = "inline"
    shapes: bool = False
    sources: bool = False
    inline: bool = False
    scopes: bool = False
    user_names: bool = True
    run: bool = False

    derivatives: Derivatives = "exact"
    fold: bool = True
    """Whether equal runs of equations become helper functions and loops (pretty style only)."""

    share: bool = True
    """Whether code that a long folded text repeats becomes functions."""

    @property
    def orders(self) -> int:
        """The number of orders of derivative rules that are written and compared."""
        return DEEPEST_RULES if self.derivatives == "exact" else 1

    @property
    def folds(self) -> bool:
        """Whether equal runs are folded with these options.

        Comments with shapes, and scopes, differ from one run to the next.
        """
        return self.fold and self.style == "pretty" and not (self.shapes or self.scopes)

    def __post_init__(self) -> None:
        """Raise `ValueError` for an invalid choice."""
        for name, choices in _CHOICES.items():
            chosen = getattr(self, name)
            if chosen not in choices:
                expected = ", ".join(map(repr, choices))
                raise ValueError(f"{name} must be one of {expected}, not {chosen!r}")
