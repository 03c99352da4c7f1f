"""What a jitted function was told. Holds for JAX 0.8 to 0.12.

Private API used: `_jit_info` of a jitted function (a `PjitInfo`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Statics:
    """Arguments that a jitted function takes as they are."""

    positions: frozenset[int]
    names: frozenset[str]


def statics(function: Callable[..., Any]) -> Statics:
    """None for a function that is not jitted."""
    info = getattr(function, "_jit_info", None)
    positions = tuple(getattr(info, "static_argnums", ()) or ())
    names = tuple(getattr(info, "static_argnames", ()) or ())
    return Statics(frozenset(positions), frozenset(names))


def is_jitted(function: Callable[..., Any]) -> bool:
    return hasattr(function, "_jit_info")
