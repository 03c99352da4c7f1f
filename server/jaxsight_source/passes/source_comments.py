"""Comments with the user's source above the statements written for it, at each change of line."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence

from jaxsight_source.equations.locations import made_at
from jaxsight_source.text.exprs import changed
from jaxsight_source.text.layout import STEP, WIDTH
from jaxsight_source.text.statements import equations_of

Line = tuple[str, int]
"""A file and a line number."""


def with_sources(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a module with comments, also in all functions."""
    return _remarked(body, "", None)[0]


def _remarked(
    body: Sequence[ast.stmt], indent: str, line: Line | None
) -> tuple[list[ast.stmt], Line | None]:
    """Return statements with comments, after `line`, and the line of the last one."""
    remarked: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.FunctionDef(body=inside):
                inside, _ = _remarked(inside, indent + STEP, None)
                remarked.append(changed(statement, body=inside))
            case ast.With(body=inside) | ast.For(body=inside):
                inside, line = _remarked(inside, indent + STEP, line)
                remarked.append(changed(statement, body=inside))
            case _:
                equations = equations_of(statement)
                made = made_at(equations[-1]) if equations else None
                text = linecache.getline(made.file, made.line) if made is not None else ""
                if made is not None and text.strip() and (made.file, made.line) != line:
                    line = made.file, made.line
                    room = WIDTH - len(indent) - len("# ")
                    text = " ".join(text.split())
                    shown = text if len(text) <= room else text[: room - 1] + "…"
                    statement = changed(statement, remarks=shown)
                remarked.append(statement)
    return remarked, line
