"""The types of a function's expressions, line by line: what `%shapes` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING

from jaxsight.library.kernels import places_of
from jaxsight.library.written import expression, file_title
from jaxsight.text.inert import one_line
from jaxsight.text.layout import aligned, cut

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location

_LONGEST = 60
"""Characters of an expression, a choice: beside its type it fits a cell."""


def shapes_of(jaxpr: object) -> Iterator[str]:
    """Yield a line for each expression: where it is, its source, and its type.

    The last equation of an expression computes its result.
    """
    from jaxsight_source.compat import avals
    from jaxsight_source.compat.inner import walk

    places = dict(places_of(jaxpr))
    found: dict[Location, tuple[str, str]] = {}
    for path, equation in walk(jaxpr):
        at = places.get(path)
        if at is None or not (text := expression(at)):
            continue
        types = ", ".join(avals.text(var.aval) for var in equation.outvars)
        found[at] = (cut(one_line(text), _LONGEST), types)
    rows = [(f"{file_title(at.file)}:{at.line}", *found[at]) for at in sorted(found, key=astuple)]
    if rows:
        yield from aligned(rows, "lll")
    else:
        yield "no expression creates an equation"
