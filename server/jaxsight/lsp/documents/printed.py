"""Printed programs that are open in the client: virtual documents, and files of their languages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lsprotocol import types

from jaxsight.features.printed_programs.program import LANGUAGES, PrintedProgram
from jaxsight.features.printed_programs.read import read
from jaxsight.lsp.documents.text import ClientDocument, DocumentWindow, Units
from jaxsight.lsp.documents.uris import uri_key, uri_of
from jaxsight.lsp.documents.virtual_uris import PLAIN, VirtualDocument

T = TypeVar("T")

LARGE = 100_000
"""Characters from which a text is read in a thread, a choice: shorter ones are read in less than
starting a thread would save; longer ones would hold up the loop."""

_LARGEST = 50_000_000
"""Characters of the longest text that is read: VS Code does not send longer ones either
(`TextModel._MODEL_SYNC_LIMIT`, 50 MB)."""


@dataclass(slots=True, eq=False)
class Printed:
    """An open printed program.

    `shows` is the virtual document that it is; `None` for a file.
    """

    document: ClientDocument
    language: str
    shows: VirtualDocument | None
    reading: asyncio.Task[PrintedProgram] | None = None


async def _computed(work: Callable[[], T], length: int) -> T:
    """Return the result of work on a text of some length."""
    return work() if length < LARGE else await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """A program as it was when it was read, with the window to convert its positions."""

    program: PrintedProgram
    view: DocumentWindow
    shows: VirtualDocument | None

    @property
    def uri(self) -> str:
        return self.view.uri

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which takes long for a long text: then from a thread."""
        return await _computed(work, len(self.program.text))

    def offset(self, position: types.Position) -> int:
        """Convert a client's position to an offset."""
        return self.program.offset(self.view.position(position))

    def range(self, start: int, end: int) -> types.Range:
        """Convert offsets to a client's range."""
        return self.view.to_range(self.program.range(start, end))


class PrintedPrograms:
    """The open printed programs, by URI."""

    def __init__(self) -> None:
        self._open: dict[str, Printed] = {}

    def open(self, uri: str, language: str, version: int, text: str) -> None:
        """Store a document if it is a printed program."""
        shows = VirtualDocument.parse(uri)
        if shows is not None:
            language = shows.kind
        elif language not in LANGUAGES:
            # Editors without a mode for a language report another one.
            language = next((kind for kind, end in PLAIN.items() if uri.endswith(end)), "")
            if uri.endswith(".mlir"):
                language = "stablehlo"
        if language in LANGUAGES and len(text) <= _LARGEST:
            document = ClientDocument(uri, uri, version, text)
            self._open[uri_key(uri)] = Printed(document, language, shows)

    def change(
        self,
        uri: str,
        version: int,
        changes: Sequence[types.TextDocumentContentChangeEvent],
        units: Units,
    ) -> None:
        """Apply the client's edits: a virtual document that is shown again has another text."""
        printed = self._open.get(uri_key(uri))
        if printed is not None:
            printed.document.apply(changes, version, units)
            printed.reading = None

    def text(self, path: str) -> str | None:
        """Return the text of a file that is open, with edits that are not saved."""
        printed = self._open.get(uri_key(uri_of(path)))
        return None if printed is None else printed.document.text

    def window(self, path: str, units: Units) -> DocumentWindow | None:
        """Return the window to convert positions of a file with, or `None` if it is not open."""
        printed = self._open.get(uri_key(uri_of(path)))
        return None if printed is None else DocumentWindow(printed.document, units)

    def close(self, uri: str) -> None:
        """Remove a document."""
        self._open.pop(uri_key(uri), None)

    async def read(self, uri: str, units: Units) -> ReadProgram | None:
        """Return an open program; `None` if it is none, or has changed meanwhile."""
        printed = self._open.get(uri_key(uri))
        if printed is None:
            return None
        version = printed.document.version
        if printed.reading is None:
            work = partial(read, printed.language, printed.document.text)
            reading = _computed(work, len(printed.document.text))
            printed.reading = asyncio.ensure_future(reading)
        # A cancelled request does not cancel what others wait for.
        program = await asyncio.shield(printed.reading)
        if self._open.get(uri_key(uri)) is not printed or printed.document.version != version:
            return None
        return ReadProgram(program, DocumentWindow(printed.document, units), printed.shows)

    def showing(self, path: str) -> list[str]:
        """Return the URIs of open documents about functions of a file."""
        return [
            printed.document.uri
            for printed in self._open.values()
            if printed.shows is not None and printed.shows.path == path
        ]
