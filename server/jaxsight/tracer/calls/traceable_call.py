"""A function with the inputs to trace it with, such as a transformation of a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TraceableCall:
    """A function with the inputs to trace it with; `about` describes it for users."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    about: str
