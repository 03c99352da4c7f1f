"""A kind of inlay hints: a setting that shows it, and what it says of a document's functions.

Each kind is a module of this folder that declares `KIND`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from jaxsight.features.model import Hint
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.settings.schema import InlayHints
from jaxsight.source.text import Range


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document whose hints are shown.

    `views` are the newest answer about each function, and the last trace of each whose newest one
    failed: a half-typed name is an error, but the code around it keeps its hints.
    """

    engine: Engine
    document: Document
    views: Sequence[View]
    wanted: InlayHints
    range: Range | None
    """The part of the text to show hints in; `None` for all of it."""
    _kernels: dict[View, LocatedFigures | None] = field(
        default_factory=dict, init=False, compare=False
    )
    """The kernels of views, which several kinds describe."""

    def kernels(self, view: View) -> LocatedFigures | None:
        """Return a function's kernels on the first target, if it is traced and was compiled."""
        if view not in self._kernels:
            kernels = self.engine.programs.kernels(view) if view.is_traced else None
            self._kernels[view] = kernels
        return self._kernels[view]

    @property
    def programs(self) -> Sequence[View]:
        """The functions that are compiled by themselves, as their texts are now."""
        return [view for view in self.views if not (view.compiled_as or view.stale)]

    def holds(self, range: Range) -> bool:
        """Return whether a hint at a place is to be shown."""
        return self.range is None or self.range.touches(range)


@dataclass(frozen=True, slots=True)
class HintKind:
    """A kind of hints.

    `settings` are the names of settings `inlayHints.*`, any of which shows it; `hints` yields its
    hints, also outside of the range.
    """

    settings: tuple[str, ...]
    hints: Callable[[ShownDocument], Iterable[Hint]]
    needs_kernels: bool = False
    """Whether functions are compiled for it."""

    def is_wanted(self, settings: InlayHints) -> bool:
        """Return whether the settings show it."""
        return any(getattr(settings, name) for name in self.settings)
