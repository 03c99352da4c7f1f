"""A function's compiled program on a target, at its current places in the text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jaxsight.figures.figures import AnyFigures, Figures
from jaxsight.queries.programs.refused import Refused
from jaxsight.queries.traces.equation_ranges import EquationRanges
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.text import Range
from jaxsight.wire.chunks import Span
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.meshes import Chosen
from jaxsight.wire.messages.replies import Traced


@dataclass(eq=False, kw_only=True)
class LocatedFigures(Figures[Range]):
    """A function's compiled program on one target, at its current places in the text."""

    places: EquationRanges
    view: View

    @staticmethod
    def at(view: View, known: AnyFigures | Refused) -> LocatedFigures | Refused:
        """Return what is known of a function's program with its places in a view."""
        if isinstance(known, Refused):
            return known
        spans = {equation.path: equation.span for equation in known.lowered.equations}
        return LocatedFigures(
            known.target,
            known.compiled,
            known.lowered,
            known.is_unfolded,
            places=EquationRanges(view, spans),
            view=view,
        )

    @property
    def has_assumed_sizes(self) -> bool:
        """Whether nobody wrote the inputs that the function was traced with."""
        return bool(self.view.assumed)

    @property
    def trace_seconds(self) -> float | None:
        """How long JAX traced the function, with the observation of its expressions."""
        reply = self.view.answer.reply
        return dict(reply.seconds).get("trace") if isinstance(reply, Traced) else None

    @functools.cached_property
    def _shardings(self) -> dict[tuple[str, str], Chosen]:
        return {(each.equation, each.type): each for each in self.compiled.shardings}

    def sharding(self, path: str, type: str) -> Chosen | None:
        """Return the sharding of an equation's result of a type, as the HLO has it."""
        return self._shardings.get((path, type))

    def written_at(self, range: Range) -> Sequence[str]:
        """Return the equations whose place is exactly a range."""
        return self._written.get(range, ())

    @functools.cached_property
    def _written(self) -> dict[Range | None, list[str]]:
        paths: dict[Range | None, list[str]] = {}
        for path in self.equations:
            paths.setdefault(self.place(path), []).append(path)
        return paths

    def ending(self, kernel: Kernel) -> Range | None:
        """Return the range of a kernel's fusion boundary; its start while it is being edited."""
        paths = [kernel.ends_at, *reversed(kernel.equations)]
        span = next((at for path in paths if path and (at := self.places.span(path))), None)
        if span is None:
            return None
        start = Span(span.chunk, span.line, span.column, span.line, span.column)
        return self.view.range_of(span) or self.view.range_of(start)

    def holding(self, place: Range) -> list[int]:
        """Return the kernels that compute an equation within a range."""
        return [
            index
            for index, kernel in enumerate(self.graph.kernels)
            if any(
                (at := self.place(path)) is not None and place.holds(at)
                for path in kernel.equations
            )
        ]


Compilation: TypeAlias = LocatedFigures | Refused
"""A function's program, or why it was not compiled."""
