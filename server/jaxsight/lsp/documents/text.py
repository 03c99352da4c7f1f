"""The documents that the client has open, and their position in the engine's documents.

A text document is a whole engine document; a notebook cell is a range of lines of one.
Features need not distinguish them: they get the `View` of a URI and convert positions with it.
Lines end at LF, CRLF and CR and nowhere else (Python's `splitlines`, which pygls uses, also splits
at form feeds and U+2028, so its edits change the wrong lines).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types

from jaxsight.source.text import Position, Range

# Columns as clients count them: in UTF-8 bytes, UTF-16 units or code points, as negotiated.
#
# The engine counts code points.
# All positions in the protocol are converted here, line by line.

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""The codec of each encoding, and the bytes of its units."""


def _count(encoding: str, text: str) -> int:
    """Return the number of a text's units."""
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


@dataclass(frozen=True, slots=True)
class Units:
    """A position encoding of LSP 3.17: `utf-8`, `utf-16` or `utf-32`."""

    encoding: str = "utf-16"

    def column(self, line: str, units: int) -> int:
        """Return the index of the code point at the client's column `units`.

        A column inside a code point is moved to its end.
        """
        if line.isascii():
            return min(units, len(line))
        passed = 0
        for column, character in enumerate(line):
            if passed >= units:
                return column
            passed += _count(self.encoding, character)
        return len(line)

    def units(self, line: str, column: int) -> int:
        """Return the client's column of a code point.

        A column past the end of the line is moved to the end.
        """
        return _count(self.encoding, line[:column])


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their ends.

    There is no empty line after a final line end.
    """
    return io.StringIO(text, newline="").readlines()


class ClientDocument:
    """An open text: its lines, updated with each edit."""

    __slots__ = ("_text", "lines", "path", "uri", "version")

    def __init__(self, uri: str, path: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = path
        """The path for the engine: that of the file, or of the notebook for a cell."""
        self.version = version
        self.lines = split_lines(text)
        self._text: str | None = text

    @property
    def text(self) -> str:
        """The whole text."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    def line(self, number: int) -> str:
        """Return a line without its end; empty if the document has fewer lines."""
        return self.lines[number].rstrip("\r\n") if number < len(self.lines) else ""

    @property
    def last_line(self) -> int:
        """The index of the last line that an editor shows: after a final line end, an empty one."""
        if not self.lines:
            return 0
        return len(self.lines) - (not self.lines[-1].endswith(("\n", "\r")))

    def apply(
        self,
        changes: Sequence[types.TextDocumentContentChangeEvent],
        version: int,
        units: Units,
    ) -> None:
        """Apply the client's edits in order.

        Positions past the end of a line or of the text are moved to that end.
        """
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                self._splice(change.range, change.text, units)
            else:
                self.lines = split_lines(change.text)
        self._text = None
        self.version = version

    def _splice(self, where: types.Range, text: str, units: Units) -> None:
        first, before = self._locate(where.start, units)
        last, after = self._locate(where.end, units)
        head = self.lines[first][:before] if first < len(self.lines) else ""
        tail = self.lines[last][after:] if last < len(self.lines) else ""
        # The edit may join CR and LF to one line end, or append to a last line without an end.
        if first > 0 and (first == len(self.lines) or (head + text + tail).startswith("\n")):
            first -= 1
            head = self.lines[first] + head
        new = head + text + tail
        while last + 1 < len(self.lines) and (
            not new.endswith(("\n", "\r"))
            or (new.endswith("\r") and self.lines[last + 1].startswith("\n"))
        ):
            last += 1
            new += self.lines[last]
        self.lines[first : last + 1] = split_lines(new)

    def _locate(self, position: types.Position, units: Units) -> tuple[int, int]:
        if position.line >= len(self.lines):
            return len(self.lines), 0
        return position.line, units.column(self.line(position.line), position.character)


@dataclass(frozen=True, slots=True)
class DocumentWindow:
    """A client's document as a window of the engine's document `path`, starting at line `first`.

    A view is valid until the next await: after it, get the view again.
    """

    document: ClientDocument
    units: Units
    first: int = 0
    is_entire: bool = True
    """Whether the window covers the whole engine document."""

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def path(self) -> str:
        return self.document.path

    def position(self, position: types.Position) -> Position:
        """Convert a client's position to the engine's."""
        column = self.units.column(self.document.line(position.line), position.character)
        return Position(position.line + self.first, column)

    def range(self, where: types.Range) -> Range:
        """Convert a client's range to the engine's."""
        return Range(self.position(where.start), self.position(where.end))

    def holds(self, where: Range) -> bool:
        """Return whether a range of the engine's document begins in this window."""
        return self.is_entire or (
            self.first <= where.start.line <= self.first + self.document.last_line
        )

    def to_position(self, position: Position) -> types.Position:
        """Convert an engine's position to the client's.

        Positions outside the window are moved to its edge.
        """
        line = position.line - self.first
        if line < 0:
            return types.Position(line=0, character=0)
        if line > (last := self.document.last_line):
            line, column = last, len(self.document.line(last))
        else:
            column = position.column
        text = self.document.line(line)
        return types.Position(line=line, character=self.units.units(text, column))

    def to_range(self, where: Range) -> types.Range:
        """Convert an engine's range to the client's."""
        return types.Range(start=self.to_position(where.start), end=self.to_position(where.end))
