"""A function with the inputs to trace it with, such as a transformation of a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceableCall:
    """A function with the inputs to trace it with; `about` describes it for users."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    name: str
    about: str
