"""Everything that is open in the client: served documents, and the engine documents they form.

Served are Python files, unsaved new Python documents (`untitled:`, treated as files in the first
root), and Jupyter notebooks.
Other documents (the old side of a diff, a stub, another language) have no view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol import types

from jaxsight.lsp.documents.text import ClientDocument, DocumentWindow, Units
from jaxsight.lsp.documents.uris import path_of, uri_key
from jaxsight.source.text import Range
from jaxsight.text.magics import without_magics

# Join the Python cells of a notebook into one text for the engine.
#
# The engine does not know about cells.
# A cell's text has exactly the lines that the editor shows of it, so a position is mapped by adding
# the number of lines above the cell.


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

    def windows(self, units: Units) -> list[DocumentWindow]:
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


class ClientDocuments:
    """The client's open documents, by URI and by the engine's path."""

    def __init__(self, units: Units) -> None:
        self.units = units
        self.home = ""
        """The folder that unsaved documents are treated as files of."""
        self._documents: dict[str, ClientDocument] = {}
        self._notebooks: dict[str, Notebook] = {}

    def served(self, uri: str) -> str | None:
        """Return the engine's path of a Python document, or `None` if it is not served."""
        if (path := path_of(uri)) is not None:
            return path
        scheme, _, name = uri.partition(":")
        if scheme != "untitled":
            return None
        name = uri_key(name)
        return name if name.startswith("/") else f"{self.home}/untitled:{name}"

    def open(self, uri: str, language: str, version: int, text: str) -> ClientDocument | None:
        """Store a document if it is served."""
        path = self.served(uri)
        if path is None or language != "python":
            return None
        document = self._documents[uri_key(uri)] = ClientDocument(uri, path, version, text)
        return document

    def get(self, uri: str) -> ClientDocument | None:
        """Return an open text document, which is not a cell."""
        return self._documents.get(uri_key(uri))

    def close(self, uri: str) -> ClientDocument | None:
        """Remove a text document."""
        return self._documents.pop(uri_key(uri), None)

    def open_notebook(self, uri: str) -> Notebook | None:
        """Add an empty notebook."""
        if (path := self.served(uri)) is not None:
            self._notebooks[uri_key(uri)] = Notebook(uri, path)
        return self.notebook(uri)

    def notebook(self, uri: str) -> Notebook | None:
        """Return an open notebook."""
        return self._notebooks.get(uri_key(uri))

    def close_notebook(self, uri: str) -> Notebook | None:
        """Remove a notebook and its cells."""
        return self._notebooks.pop(uri_key(uri), None)

    def window_of(self, uri: str) -> DocumentWindow | None:
        """Return the window to convert positions of `uri` with, or `None` if it is not served."""
        key = uri_key(uri)
        if (document := self._documents.get(key)) is not None:
            return DocumentWindow(document, self.units)
        cells = (cell for each in self._notebooks.values() for cell in each.windows(self.units))
        return next((cell for cell in cells if uri_key(cell.uri) == key), None)

    def windows(self, path: str) -> list[DocumentWindow]:
        """Return all windows on an engine document: one for a file, one per cell for a notebook."""
        documents = [each for each in self._documents.values() if each.path == path]
        notebooks = [each for each in self._notebooks.values() if each.path == path]
        cells = [view for notebook in notebooks for view in notebook.windows(self.units)]
        return [*(DocumentWindow(document, self.units) for document in documents), *cells]

    def window(self, path: str, where: Range) -> DocumentWindow | None:
        """Return the window in which a range of an engine document begins."""
        return next((view for view in self.windows(path) if view.holds(where)), None)
