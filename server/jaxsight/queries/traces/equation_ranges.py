"""The current places of the equations of a traced function."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from jaxsight.figures.figures import Places
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Range
from jaxsight.text.parsing import FUNCTIONS, FunctionNode, nodes_around
from jaxsight.wire.chunks import Span


class EquationRanges(Places[Range]):
    """The places of a program's equations, by path, cached."""

    def __init__(self, view: View, spans: Mapping[str, Span | None]) -> None:
        self._view = view
        self._spans = spans
        self._known: dict[str, Range | None] = {}

    def span(self, path: str) -> Span | None:
        """Return the traced span of an equation; without one, that of the enclosing equation."""
        span = self._spans.get(path)
        if span is not None or "/" not in path:
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

    def around(self, path: str) -> Sequence[ast.AST]:
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
        return nodes_around(tree_of(chunk.text), (line, column), whole=whole)[::-1]
