"""What `jaxsight.inverse` refuses, and where in the user's program the reason lies."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

from jaxsight.interpreters.compat.equations import called, function_name, is_of_jax
from jaxsight.interpreters.compat.locations import locations
from jaxsight.interpreters.inversion.network import Placed

_OURS = str(Path(__file__).resolve().parents[2])


class NotInvertible(ValueError):
    """A function that has no inverse, as far as the rules know.

    `primitive` is the name of the operation to blame; none when it is no single one. `equation` is
    the user's: that operation, or the call of one of JAX's functions that it is part of. `file` and
    `line` are where it was written; empty and 0 when that is not known.
    """

    def __init__(self, function: str, reason: str, culprit: Placed | None = None) -> None:
        self.reason = reason
        self.equation: Any = None
        self.primitive: str | None = None
        self.file, self.line = "", 0
        told = [f"{function} cannot be inverted: {reason}"]
        if culprit is not None:
            self.primitive = culprit.name
            self.equation, within = _users(culprit)
            self.file, self.line = _place(self.equation)
            told = [f"{function} cannot be inverted: {self.primitive}{within} {reason}"]
        if self.file:
            text = linecache.getline(self.file, self.line).strip()
            told += [f'  File "{self.file}", line {self.line}', *([f"    {text}"] if text else [])]
        super().__init__("\n".join(told))


def _users(culprit: Placed) -> tuple[Any, str]:
    """The equation that the user wrote, and the name of the function of JAX's that it calls."""
    written, within = culprit, ""
    around = culprit.within
    while around is not None:
        program = called(around.equation)
        if program is not None and is_of_jax(program):
            written, within = around, f" (in {function_name(program)})"
        around = around.within
    return written.equation, within


def _place(equation: Any) -> tuple[str, int]:
    """The innermost frame of the user's."""
    for location in locations(equation):
        if not location.file.startswith(_OURS):
            return location.file, location.line
    return "", 0
