"""What a module of `findings/` returns, in the words of the program: the engine finds the places in the text."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.tracer.places import Span


@dataclass(frozen=True, slots=True)
class Noticed:
    """One finding. `at` is the path of the equation that it is about; empty for the whole function."""

    code: str
    message: str
    at: str = ""
    span: Span | None = None
    """In place of `at`, where something other than an equation is meant."""
    related: tuple[tuple[str, str], ...] = ()
    """Other equations that it speaks of, each with a word on them."""
    severity: str = ""
    """In place of the code's own."""
