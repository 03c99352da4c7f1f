"""A mark after the signature of a function whose newest answer has caveats."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features import caveats
from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.kind import Kind, Shown
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.model import Hint
from jaxsight.queries.traces.located_answer import View


def _hints(shown: Shown) -> Iterator[Hint]:
    newest: dict[str, View] = {}
    for view in called.without_repeats(shown.views):
        newest.setdefault(view.subject.name, view)
    for view in newest.values():
        hint = caveats.hint(view, head(view))
        if hint is not None:
            yield hint


KIND = Kind(("shapes", "kernels"), _hints)
