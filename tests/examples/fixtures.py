"""Functions for these tests, as the engine finds them in source text; the whole text counts as one
chunk.
"""

from __future__ import annotations

import ast
from textwrap import dedent

from jaxsight.source import definitions
from jaxsight.source.definitions import Function
from jaxsight.source.text import Edit, Position


def function(source: str, name: str | None = None) -> Function:
    """The function of that qualified name, or the first; `source` may be indented as a whole."""
    if source.lstrip("\r\n").startswith(" "):
        source = dedent(source)
    found = {f.qualname: f for f in definitions.functions_in(ast.parse(source), source)}
    return found[name] if name is not None else next(iter(found.values()))


def at_cursor(source: str, name: str | None = None) -> tuple[Function, Position]:
    """The function of a source and the position of its `$0`."""
    before, _, after = source.partition("$0")
    position = Position(before.count("\n"), len(before) - before.rfind("\n") - 1)
    return function(before + after, name), position


def edited(source: str, edit: Edit) -> str:
    """The source with an edit made."""
    lines = source.split("\n")

    def offset(position: Position) -> int:
        return sum(len(line) + 1 for line in lines[: position.line]) + position.column

    return source[: offset(edit.range.start)] + edit.text + source[offset(edit.range.end) :]
