"""Comments with the user's source above the statements written for it, at each change of line."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Sequence

from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.sourcerizer.equations.locations import made_at
from jaxsight.sourcerizer.text.layout import STEP, WIDTH
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Remark,
    Return,
    Statement,
    With,
)

Line = tuple[str, int]
"""A file and a line number."""


def with_sources(body: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a module with comments, also in all functions."""
    return _remarked(body, "", None)[0]


def _remarked(
    body: Sequence[Statement], indent: str, line: Line | None
) -> tuple[list[Statement], Line | None]:
    """Return statements with comments, after `line`, and the line of the last one."""
    remarked: list[Statement] = []
    for statement in body:
        match statement:
            case Function(body=inside):
                inside, _ = _remarked(inside, indent + STEP, None)
                remarked.append(dataclasses.replace(statement, body=inside))
            case With(context, inside):
                inside, line = _remarked(inside, indent + STEP, line)
                remarked.append(With(context, inside))
            case For(body=inside):
                inside, line = _remarked(inside, indent + STEP, line)
                remarked.append(dataclasses.replace(statement, body=inside))
            case (
                Assign(equations=equations)
                | Effect(equations=equations)
                | Return(equations=equations)
            ):
                source_line = _line(equations[-1]) if equations else None
                if source_line is not None and source_line != line:
                    remarked.append(Remark(_text(source_line, indent)))
                    line = source_line
                remarked.append(statement)
            case _:
                remarked.append(statement)
    return remarked, line


def _line(equation: Equation) -> Line | None:
    """Return the user's line that created an equation, if it can be read."""
    location = made_at(equation)
    if location is None or not linecache.getline(location.file, location.line).strip():
        return None
    return location.file, location.line


def _text(line: Line, indent: str) -> str:
    room = WIDTH - len(indent) - len("# ")
    text = " ".join(linecache.getline(*line).split())
    return text if len(text) <= room else text[: room - 1] + "…"
