"""Which functions the traces of a file have reached, be it their own or those of their callers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jaxsight.queries.traces.located_answer import View
from jaxsight.source.functions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.source.text import Position


class ReachedPlaces:
    """The places of a file that traces have reached, with the traced functions."""

    def __init__(self, views: Sequence[View]) -> None:
        places = ((place.start, view.subject.name) for view in views for place in view.observed)
        self._places = sorted(places)

    def by(self, chunk: ModuleChunk, function: Function) -> str:
        """Return a traced function whose trace has reached the body of one; empty if none."""
        start = function.body_start
        body = Position(start.line + chunk.first_line, start.column)
        first = bisect_left(self._places, (body, ""))
        if first == len(self._places):
            return ""
        place, name = self._places[first]
        return name if place in function.range.shifted(chunk.first_line) else ""
