"""What the caller of the sourcerizer may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Style = Literal["lax", "pretty"]
Constants = Literal["inline", "npz", "argument"]


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

    def __post_init__(self) -> None:
        """Raises `ValueError` for a word that is no choice."""
        for name, choices in (("style", get_args(Style)), ("constants", get_args(Constants))):
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {given!r}")
