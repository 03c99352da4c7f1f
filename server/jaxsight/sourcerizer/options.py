"""What the caller of the sourcerizer may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    user_names: bool = True
