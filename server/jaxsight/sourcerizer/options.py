"""What the caller of the sourcerizer may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from jaxsight.interpreters.same import DEEPEST_RULES

Style = Literal["lax", "pretty"]
Constants = Literal["inline", "npz", "argument"]
Derivatives = Literal["exact", "first", "primal"]


_CHOICES = (
    ("style", get_args(Style)),
    ("constants", get_args(Constants)),
    ("derivatives", get_args(Derivatives)),
)


@dataclass(frozen=True, slots=True)
class Options:
    """See `api.sourcerize` for what each of them does."""

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
    """Whether equal runs of equations become helper functions and loops, in the pretty style."""

    share: bool = True
    """Whether what a long text repeats at several places becomes functions, where it is folded."""

    @property
    def orders(self) -> int:
        """Orders of derivatives that rules are written for, and compared."""
        return DEEPEST_RULES if self.derivatives == "exact" else 1

    @property
    def folds(self) -> bool:
        """Whether they do with these options: what is said of single lines differs from one run to
        the next.
        """
        return self.fold and self.style == "pretty" and not (self.shapes or self.scopes)

    def __post_init__(self) -> None:
        """Raises `ValueError` for a word that is no choice."""
        for name, choices in _CHOICES:
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {given!r}")
