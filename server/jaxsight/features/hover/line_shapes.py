"""The shapes of what a function binds, line by line, for clients without inlay hints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.features.inlay_hints.shapes import shape_hints
from jaxsight.queries.traces.located_answer import View

_SHAPE_WIDTH = 50
"""Characters of a shape, a choice: more than `inlayHints.width` (40), as no code follows it
here."""


@dataclass(frozen=True, slots=True)
class LineShapes:
    """The shapes of the names that one line of the source (from 0) binds."""

    line: int
    shapes: tuple[tuple[str, str], ...]


def line_shapes(view: View) -> Iterator[LineShapes]:
    """Yield the shapes of the parameters and assignments of the function, line by line."""
    inside = view.subject.range
    targets = [
        (range, observation)
        for range, observation in sorted(view.observed.items(), key=lambda entry: entry[0])
        if observation.kind in ("target", "parameter") and range.start in inside
    ]
    by_line: dict[int, list[tuple[str, str]]] = {}
    for hint in shape_hints(targets, view, _SHAPE_WIDTH):
        name = view.module.slice_text(hint.range)
        by_line.setdefault(hint.range.end.line, []).append((name, hint.label.removeprefix(": ")))
    for line, shapes in by_line.items():
        yield LineShapes(line, tuple(shapes))
