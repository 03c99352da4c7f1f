"""A function's compiled program on a target, at its current places in the text."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from jaxsight.figures.figures import AnyFigures, Figures, Places
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Range
from jaxsight.targets.target import Target
from jaxsight.text.parsing import FUNCTIONS, FunctionNode, enclosing_nodes
from jaxsight.wire.chunks import Span
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.meshes import Chosen
from jaxsight.wire.messages.replies import Lowered, Traced
from jaxsight.workers.compilation.compilers import Trouble

# The current places of the equations of a traced function.


class EquationRanges(Places[Range]):
    """The places of a program's equations, by path, cached."""

    def __init__(self, view: View, spans: Mapping[str, Span | None]) -> None:
        self._view = view
        self._spans = spans
        self._known: dict[str, Range | None] = {}

    def span(self, path: str) -> Span | None:
        """Return the traced span of an equation; without one, that of the enclosing equation."""
        if (span := self._spans.get(path)) is not None or "/" not in path:
            return span
        return self.span(path.rsplit("/", 2)[0])

    def of(self, path: str) -> Range | None:
        """Return the current range of an equation; without one, that of the enclosing equation."""
        if path not in self._known:
            span = self._spans.get(path)
            place = self._view.range_of(span) if span is not None else None
            if place is None and "/" in path:
                place = self.of(path.rsplit("/", 2)[0])
            self._known[path] = place
        return self._known[path]

    def text(self, path: str) -> str:
        """Return the user's text of an equation on one line; empty if it has no place."""
        place = self.of(path)
        return " ".join(self._view.module.slice_text(place).split()) if place is not None else ""

    def lines(self, at: Range) -> tuple[str, int, int]:
        """Return no title, as all places are in the function's file, the first and last line."""
        return "", at.start.line + 1, at.end.line + 1

    def at(self, span: Span) -> Range | None:
        """Return the current range of a span; `None` if it is gone."""
        return self._view.range_of(span)

    def written(self, at: Range) -> str:
        """Return the user's text in a range."""
        return self._view.module.slice_text(at)

    def tree(self, chunk: str) -> ast.Module | None:
        """Return the syntax tree of a traced chunk."""
        texts = self._view.answer.texts
        try:
            return tree_of(texts[chunk][1]) if chunk in texts else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def ancestors(self, path: str) -> Sequence[ast.AST]:
        """Return the syntax nodes around an equation, innermost first, up to its function.

        Lines of the nodes count from the start of the chunk.
        """
        return self._syntax(self.of(path))

    def syntax(self, span: Span) -> Sequence[ast.AST]:
        """Return the syntax nodes around a traced place, as `around`."""
        return self._syntax(self._view.range_of(span))

    def functions(self, path: str) -> Sequence[FunctionNode]:
        """Return the functions and lambdas around an equation, innermost first."""
        nodes = self._syntax(self.of(path), whole=True)
        return [node for node in nodes if isinstance(node, FUNCTIONS)]

    def _syntax(self, place: Range | None, *, whole: bool = False) -> Sequence[ast.AST]:
        chunk = self._view.module.chunk_at(place.start) if place is not None else None
        if place is None or chunk is None or chunk.broken is not None:
            return ()
        line = place.start.line - chunk.first_line + 1
        column = len(self._view.module.line(place.start.line)[: place.start.column].encode())
        return enclosing_nodes(tree_of(chunk.text), (line, column), whole=whole)[::-1]


# A program that was not compiled for a target.


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that was not compiled for a target, and why."""

    target: Target
    trouble: Trouble
    lowered: Lowered | None = None
    """The program, if the function could be lowered."""
    is_complete: ClassVar = True
    """Whether another compile would add nothing."""
    knows_temporaries: ClassVar = True
    """Whether another compile would say no more about temporaries."""

    @property
    def slow(self) -> float | None:
        """The seconds that it was compiled, if it was not in time."""
        return self.trouble.seconds if self.trouble.kind == "time" else None


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

    @functools.cached_property
    def written(self) -> dict[Range | None, list[str]]:
        """The equations by their places."""
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
