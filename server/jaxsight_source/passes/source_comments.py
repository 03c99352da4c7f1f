"""Comments with the user's source above the statements written for it, at each change of line."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Sequence

from jaxsight_source.equations.locations import made_at
from jaxsight_source.text.layout import STEP, WIDTH
from jaxsight_source.text.statements import (
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
                made = made_at(equations[-1]) if equations else None
                text = linecache.getline(made.file, made.line) if made is not None else ""
                if made is not None and text.strip() and (made.file, made.line) != line:
                    line = made.file, made.line
                    room = WIDTH - len(indent) - len("# ")
                    text = " ".join(text.split())
                    remarked.append(Remark(text if len(text) <= room else text[: room - 1] + "…"))
                remarked.append(statement)
            case _:
                remarked.append(statement)
    return remarked, line
