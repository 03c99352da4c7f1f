"""Where the equations of a live function are written, in files and in cells of notebooks."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jaxsight.library.written import expression, file_title
from jaxsight.text.parsing import module_in
from jaxsight.wire.chunks import Span
from jaxsight_source.files.ours import OURS  # programs read from StableHLO have its own lines

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location


class LivePlaces:
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
