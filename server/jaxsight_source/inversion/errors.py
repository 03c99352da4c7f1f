"""The error of `jaxsight.inverse`, with the place in the user's program that causes it."""

from __future__ import annotations

import linecache

from jaxsight_source.compat.equations import called, function_name, is_of_jax
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import locations
from jaxsight_source.files.ours import OURS
from jaxsight_source.inversion.network import Placed


class NotInvertible(ValueError):
    """The rules have no inverse for a function.

    `primitive` is the name of the operation to blame; None if there is no single one. `equation` is
    the user's equation: that operation, or the call of one of JAX's functions that contains it.
    `file` and `line` are its location; empty and 0 if unknown.
    """

    def __init__(self, function: str, reason: str, culprit: Placed | None = None) -> None:
        self.reason = reason
        self.equation: Equation | None = None
        self.primitive: str | None = None
        self.file, self.line = "", 0
        lines = [f"{function} cannot be inverted: {reason}"]
        if culprit is not None:
            self.primitive = culprit.name
            # The user's equation may call one of JAX's functions, which has the culprit in it.
            written, within = culprit, ""
            around = culprit.within
            while around is not None:
                program = called(around.equation)
                if program is not None and is_of_jax(program):
                    written, within = around, f" (in {function_name(program)})"
                around = around.within
            self.equation = written.equation
            for location in locations(self.equation):  # the user's innermost frame
                if not location.file.startswith(OURS):
                    self.file, self.line = location.file, location.line
                    break
            lines = [f"{function} cannot be inverted: {self.primitive}{within} {reason}"]
        if self.file:
            text = linecache.getline(self.file, self.line).strip()
            lines += [f'  File "{self.file}", line {self.line}', *([f"    {text}"] if text else [])]
        super().__init__("\n".join(lines))
