"""Where the equations of a live function are written, in files and in cells of notebooks.

Their source is as it is there now.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from jaxsight.figures.figures import Places
from jaxsight.lru import Recent
from jaxsight.text.parsing import enclosing_nodes, module_in
from jaxsight.wire.chunks import Span
from jaxsight_source.files.ours import OURS  # programs read from StableHLO have its own lines

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location


class LivePlaces(Places["Location"]):
    """Where a live function's equations are written, as the files and cells are now."""

    def __init__(self, places: Mapping[str, Location]) -> None:
        self._places = places
        self._texts = {path: expression(at) for path, at in places.items()}

    def of(self, path: str) -> Location | None:
        """Return the place of an equation; without one, that of the equation around it."""
        while path and path not in self._places:
            path = _outer(path)
        return self._places.get(path)

    def text(self, path: str) -> str:
        """Return the source of an equation on one line; empty if it is not known."""
        return self._texts.get(path, "")

    def lines(self, at: Location) -> tuple[str, int, int]:
        """Return the title of a place's file, and its first and its last line."""
        return file_title(at.file), at.line, at.end_line

    def at(self, span: Span) -> Location:
        """Return a span as a place."""
        return place_of(span)

    def written(self, at: Location) -> str:
        """Return the text at a place on one line."""
        return expression(at)

    def tree(self, chunk: str) -> ast.AST | None:
        """Return the syntax tree of a file or cell."""
        return module_in("".join(linecache.getlines(chunk)))


def place_of(span: Span) -> Location:
    """Return the place of a span whose chunk is the path of a file."""
    from jaxsight_source.compat.locations import Location

    return Location(span.chunk, span.line, span.column, span.end_line, span.end_column)


def places_of(jaxpr: object) -> Iterator[tuple[str, Location]]:
    """Yield the paths of equations, each with where it is written, if that is known.

    That of an equation without a place of its own is that of the equation around it.
    """
    from jaxsight_source.compat.inner import walk
    from jaxsight_source.compat.locations import locations

    around: dict[str, Location] = {}
    for path, equation in walk(jaxpr):
        at = next(locations(equation), None) or around.get(_outer(path))
        if at is not None and not at.file.startswith(OURS):
            around[path] = at
            yield path, at


def _outer(path: str) -> str:
    """Return the path of the equation around one: `3` of `3/body/1`."""
    return path.rpartition("/")[0].rpartition("/")[0]


def expression(at: Location) -> str:
    """Return the text at a location on one line; empty if it is not known.

    As in tracebacks, it is that of the file as `linecache` has it. IPython and Python's prompt put
    their cells there. A file may have changed since, and marimo compiles the text of a cell without
    its indentation: what is not exactly an expression or a statement of the file is not shown.
    """
    if at.end_line < at.line or not at.line:
        return ""
    lines = linecache.getlines(at.file)
    written = lines[at.line - 1 : at.end_line]
    if len(written) != at.end_line - at.line + 1 or not _is_written(at, lines):
        return ""
    bytes_of = [line.encode() for line in written]
    bytes_of[-1] = bytes_of[-1][: at.end_column]  # before the beginning: they may be one line
    bytes_of[0] = bytes_of[0][at.column :]
    return " ".join(b"".join(bytes_of).decode(errors="replace").split())


_FILES = 64
"""Syntax trees that are kept, a choice: more files than one function is usually written in."""
_trees: Recent[str, tuple[list[str], ast.Module]] = Recent(_FILES)
"""By file, with the lines that were parsed."""


def _is_written(at: Location, lines: list[str]) -> bool:
    """Return whether a location is exactly that of a node of its file, or of a method's call.

    That of a call of a method begins at the method's name if it is on a line of its own
    (`update_start_location_to_match_attr` in CPython's compiler).
    """
    known = _trees.get(at.file)
    if known is None or known[0] is not lines:  # `linecache` keeps the list until it reads again
        tree = module_in("".join(lines))
        if tree is None:
            return False
        known = lines, tree
        _trees.put(at.file, known)
    begin, end = (at.line, at.column), (at.end_line, at.end_column)
    for node in enclosing_nodes(known[1], begin):
        if _end(node) != end:
            continue
        if (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) == begin:
            return True
        if isinstance(node, ast.Call) and isinstance(called := node.func, ast.Attribute):
            line, column = _end(called)
            if begin == (line, column - len(called.attr.encode())):
                return True
    return False


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def file_title(file: str) -> str:
    """Return the name of a file, or `In [3]` for a cell of a notebook."""
    if "IPython" in sys.modules:
        from IPython import get_ipython

        shell = get_ipython()
        # `IPython.core.compilerop.CachingCompiler`, since IPython 8: a label and a name.
        titled = getattr(getattr(shell, "compile", None), "format_code_name", None)
        if titled is not None and (found := titled(file)):
            return str(found[1])
    return PurePath(file).name


def editor_range(at: Location) -> dict[str, dict[str, int]]:
    """Return the range of a location as editors count: from 0, in units of UTF-16."""
    return {
        "start": {"line": at.line - 1, "character": _units(at.file, at.line, at.column)},
        "end": {"line": at.end_line - 1, "character": _units(at.file, at.end_line, at.end_column)},
    }


def _units(file: str, line: int, column: int) -> int:
    before = linecache.getline(file, line).encode()[:column].decode(errors="replace")
    return len(before.encode("utf-16-le")) // 2
