"""Join the Python cells of a notebook into one text for the engine.

The engine does not know about cells.
A cell's text has exactly the lines that the editor shows of it, so a position is mapped by adding
the number of lines above the cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol import types

from jaxsight.lsp.documents.position_encoding import Units
from jaxsight.lsp.documents.text import ClientDocument, DocumentWindow
from jaxsight.lsp.documents.uris import uri_key
from jaxsight.text.magics import without_magics


class Notebook:
    """The cells of an open notebook, in order."""

    def __init__(self, uri: str, path: str) -> None:
        self.uri = uri
        self.path = path
        self._order: list[str] = []
        """Keys of all cells, including Markdown cells."""
        self._cells: dict[str, ClientDocument] = {}
        """The Python cells by key."""
        self._python: dict[str, tuple[int, str]] = {}
        """The version of a cell, and its text without magics."""

    @property
    def keys(self) -> list[str]:
        """Keys of the Python cells, in order."""
        return [key for key in self._order if key in self._cells]

    def splice(self, start: int, removed: int, cells: Iterable[types.NotebookCell]) -> None:
        """Replace `removed` cells from index `start` on."""
        self._order[start : start + removed] = [uri_key(cell.document) for cell in cells]

    def open(self, cell: types.TextDocumentItem) -> None:
        """Store a cell's text, if the cell is Python."""
        if cell.language_id == "python":
            document = ClientDocument(cell.uri, self.path, cell.version, cell.text)
            self._cells[uri_key(cell.uri)] = document

    def close(self, uri: str) -> None:
        """Remove a cell that was deleted, or that is no longer Python."""
        self._cells.pop(uri_key(uri), None)
        self._python.pop(uri_key(uri), None)

    def edit(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
        units: Units,
    ) -> None:
        """Apply edits to a cell; cells that are not Python are ignored."""
        if (cell := self._cells.get(uri_key(document.uri))) is not None:
            cell.apply(changes, document.version, units)

    @property
    def text(self) -> str:
        """The text for the engine."""
        return "".join(self._text_of(key) + "\n" for key in self.keys)

    def view(self, key: str, units: Units) -> DocumentWindow | None:
        """Return the window of a cell, or `None` if there is no such Python cell."""
        return next((view for view in self.views(units) if uri_key(view.uri) == key), None)

    def views(self, units: Units) -> list[DocumentWindow]:
        """Return the windows of all Python cells."""
        views = []
        first = 0
        for key in self.keys:
            cell = self._cells[key]
            views.append(DocumentWindow(cell, units, first, is_entire=False))
            first += cell.last_line + 1
        return views

    def _text_of(self, key: str) -> str:
        cell = self._cells[key]
        version, python = self._python.get(key, (None, ""))
        if version != cell.version:
            python = without_magics(cell.text.replace("\r\n", "\n").replace("\r", "\n"))
            self._python[key] = (cell.version, python)
        return python
