"""Definitions, references and highlights in printed programs.

What no line of a program defines was written in Python: the definition of an equation is its
expression there. The way back is `textDocument/implementation`, from an expression to its equations
and instructions in the open programs, and from one program to the others.
No definitions or references of Python names are returned, as other servers return them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types

from jaxsight.features.model import Linked
from jaxsight.features.printed_programs import editor_views
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.source.text import Position, Range


class Navigation:
    """Serves requests about names and their places."""

    def __init__(self, context: ClientContext, documents: VirtualDocuments) -> None:
        self._context = context
        self._documents = documents

    def register(self) -> None:
        """Serve the requests."""
        serve = self._context.serve_programs
        serve(types.TEXT_DOCUMENT_DEFINITION, self._definition)
        serve(types.TEXT_DOCUMENT_REFERENCES, self._references)
        serve(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, self._highlights)
        self._context.serve(types.TEXT_DOCUMENT_IMPLEMENTATION, self._implementations)

    async def _definition(
        self, opened: ReadProgram, params: types.DefinitionParams
    ) -> list[types.Location] | None:
        offset = opened.offset(params.position)
        defined = editor_views.definition(opened.program, offset)
        if defined is not None:
            return [types.Location(opened.uri, opened.range(*defined))]
        if opened.shows is None:
            return None
        line = opened.program.line(offset)
        links = [link for link in await self._links(opened) if link.line == line]
        return [
            types.Location(view.uri, view.to_range(range))
            for range in dict.fromkeys(link.range for link in links if link.range is not None)
            if (view := self._context.documents.window(opened.shows.path, range)) is not None
        ]

    async def _references(
        self, opened: ReadProgram, params: types.ReferenceParams
    ) -> list[types.Location]:
        offset = opened.offset(params.position)
        spans, defined = await opened.compute(
            lambda: editor_views.occurrences(opened.program, offset)
        )
        with_definition = params.context.include_declaration
        return [
            types.Location(opened.uri, opened.range(*span))
            for span in spans
            if with_definition or span != defined
        ]

    async def _highlights(
        self, opened: ReadProgram, params: types.DocumentHighlightParams
    ) -> list[types.DocumentHighlight]:
        offset = opened.offset(params.position)
        spans, defined = await opened.compute(
            lambda: editor_views.occurrences(opened.program, offset)
        )
        read, write = types.DocumentHighlightKind.Read, types.DocumentHighlightKind.Write
        return [
            types.DocumentHighlight(opened.range(*span), write if span == defined else read)
            for span in editor_views.nearest(spans, offset)
        ]

    async def _implementations(
        self, params: types.ImplementationParams
    ) -> list[types.Location] | None:
        """Return the lines of open programs for an expression, or for a line of one of them."""
        uri = params.text_document.uri
        view = self._context.documents.window_of(uri)
        if view is not None:
            position = view.position(params.position)
            return [
                location
                for opened, links in await self._opened(view.path)
                for location in _lines(opened, _innermost(links, position))
            ]
        opened = await self._context.program(uri)
        if opened is None or opened.shows is None:
            return None
        line = opened.program.line(opened.offset(params.position))
        paths = {link.path for link in await self._links(opened) if link.line == line}
        return [
            location
            for other, links in await self._opened(opened.shows.path)
            if other.uri != uri
            and other.shows is not None
            and other.shows.function == opened.shows.function
            for location in _lines(other, [link for link in links if link.path in paths])
        ]

    async def _opened(self, path: str) -> list[tuple[ReadProgram, Sequence[Linked]]]:
        """Return the open programs of functions of a file, with their links."""
        return [
            (opened, await self._links(opened))
            for uri in self._context.printed.showing(path)
            if (opened := await self._context.program(uri)) is not None
        ]

    async def _links(self, opened: ReadProgram) -> Sequence[Linked]:
        if opened.shows is None:
            return ()
        return await self._documents.links(opened.shows, opened.program.text)


def _innermost(links: Sequence[Linked], position: Position) -> list[Linked]:
    """Return the links of the smallest expression around a position."""
    around = [link for link in links if link.range is not None and position in link.range]

    def size(range: Range | None) -> tuple[int, int]:
        assert range is not None
        lines = range.end.line - range.start.line
        return lines, range.end.column - (range.start.column if lines == 0 else 0)

    least = min((size(link.range) for link in around), default=None)
    return [link for link in around if size(link.range) == least]


def _lines(opened: ReadProgram, links: Sequence[Linked]) -> Iterator[types.Location]:
    """Yield the first line of each of several consecutive ones of an equation."""
    lines = {link.line: link.path for link in links}
    for line, path in sorted(lines.items()):
        if lines.get(line - 1) != path or opened.program.language == "hlo":
            yield types.Location(opened.uri, opened.range(*opened.program.line_range(line)))
