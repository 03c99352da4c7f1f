"""A notebook as one text for the engine: its Python cells, one after the other, each a window on
some lines.

The engine never learns that there were cells. A cell's text takes exactly the lines that the editor
shows of it, so places map by adding the number of lines above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol import types

from jaxsight.lsp.documents import Document, View
from jaxsight.lsp.magics import without_magics
from jaxsight.lsp.units import Units
from jaxsight.lsp.uris import same


class Notebook:
    """The cells of one open notebook, in their order."""

    def __init__(self, uri: str, path: str) -> None:
        self.uri = uri
        self.path = path
        self._order: list[str] = []
        """Keys of all cells, prose too."""
        self._cells: dict[str, Document] = {}
        """The Python cells by key."""
        self._python: dict[str, tuple[int, str]] = {}
        """The text of a cell without its magics, and of which version."""

    @property
    def keys(self) -> list[str]:
        """The Python cells, from the first to the last."""
        return [key for key in self._order if key in self._cells]

    def splice(self, start: int, removed: int, cells: Iterable[types.NotebookCell]) -> None:
        """Put cells in the place of `removed` others."""
        self._order[start : start + removed] = [same(cell.document) for cell in cells]

    def open(self, item: types.TextDocumentItem) -> None:
        """A cell's text became known; only Python is kept."""
        if item.language_id == "python":
            self._cells[same(item.uri)] = Document(item.uri, self.path, item.version, item.text)

    def close(self, uri: str) -> None:
        """A cell is gone, or is Python no more."""
        self._cells.pop(same(uri), None)
        self._python.pop(same(uri), None)

    def edit(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
        units: Units,
    ) -> None:
        """Take in edits of one cell; those of a cell that is not Python are none of ours."""
        if (cell := self._cells.get(same(document.uri))) is not None:
            cell.apply(changes, document.version, units)

    @property
    def text(self) -> str:
        """The engine's text."""
        return "".join(self._text_of(key) + "\n" for key in self.keys)

    def view(self, key: str, units: Units) -> View | None:
        """One cell as a window."""
        first = 0
        for other in self.keys:
            cell = self._cells[other]
            if other == key:
                return View(cell, units, first, whole=False)
            first += cell.last_line + 1
        return None

    def views(self, units: Units) -> list[View]:
        """All Python cells as windows."""
        views = []
        first = 0
        for key in self.keys:
            cell = self._cells[key]
            views.append(View(cell, units, first, whole=False))
            first += cell.last_line + 1
        return views

    def _text_of(self, key: str) -> str:
        cell = self._cells[key]
        known = self._python.get(key)
        if known is None or known[0] != cell.version:
            lines = cell.text.replace("\r\n", "\n").replace("\r", "\n")
            known = self._python[key] = (cell.version, without_magics(lines))
        return known[1]
