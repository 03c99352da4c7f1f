"""Which functions the traces of a file have reached, be it their own or those of their callers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jaxsight.queries.traces.located_answer import View
from jaxsight.source.module import PlacedFunction


class ReachedPlaces:
    """The places of a file that traces have reached, with the traced functions."""

    def __init__(self, views: Sequence[View]) -> None:
        places = ((place.start, view.subject.name) for view in views for place in view.observed)
        self._places = sorted(places)

    def by(self, function: PlacedFunction) -> str:
        """Return a traced function whose trace has reached the body of one; empty if none."""
        first = bisect_left(self._places, (function.body.start, ""))
        if first == len(self._places):
            return ""
        place, name = self._places[first]
        return name if place in function.range else ""
