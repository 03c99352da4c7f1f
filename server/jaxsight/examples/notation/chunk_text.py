"""Text of a chunk: offsets into it are converted to the chunk's positions, and back.

Lines end where Python ends them (`\\n`, `\\r\\n`, `\\r`), nowhere else.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from jaxsight.source.text import Position, Range

_LINE_END = re.compile(r"\r\n|\r|\n")
_START = Position(0, 0)


class ChunkText:
    """A text whose first character is at `origin`."""

    __slots__ = ("_ends", "_starts", "origin", "text")

    def __init__(self, text: str, origin: Position = _START) -> None:
        self.text = text
        self.origin = origin
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(m.end() for m in ends)]
        self._ends = [*(m.start() for m in ends), len(text)]

    @property
    def line_count(self) -> int:
        return len(self._starts)

    def line_bounds(self, line: int) -> tuple[int, int]:
        """Return the offsets of a line (from 0), without its end."""
        return self._starts[line], self._ends[line]

    def line(self, line: int) -> str:
        return self.text[self._starts[line] : self._ends[line]]

    def line_of(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def indent(self, line: int) -> int:
        """Return the width of a line's leading blanks.

        The first line begins after the quotes, so its indentation is computed from their column.
        """
        if line == 0:
            return max(0, self.origin.column - 3)
        text = self.line(line)
        return len(text) - len(text.lstrip(" \t"))

    def position(self, offset: int) -> Position:
        line = self.line_of(offset)
        column = offset - self._starts[line]
        if line == 0:
            column += self.origin.column
        return Position(self.origin.line + line, column)

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def text_of(self, range: Range) -> str:
        """Return the text of a range."""
        return self.text[self.offset(range.start) : self.offset(range.end)]

    def offset(self, position: Position) -> int | None:
        """Return the offset of a position of the chunk; `None` outside of the text."""
        line = position.line - self.origin.line
        if not 0 <= line < self.line_count:
            return None
        column = position.column - (self.origin.column if line == 0 else 0)
        start, end = self.line_bounds(line)
        return start + column if 0 <= column <= end - start else None
