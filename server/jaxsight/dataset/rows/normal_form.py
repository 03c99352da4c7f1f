"""The normal form of a program: as the sourcerizer writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxsight.sourcerizer.api import sourcerize
from jaxsight.sourcerizer.errors import TooLarge, TooLong, Unsourceable


def normal_form(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str | None:
    """Return a function as pretty source that traces to the same jaxpr; None if it has no such."""
    try:
        return str(sourcerize(function, style="pretty", run=False)(*arguments))
    except (Unsourceable, TooLarge, TooLong):
        return None
