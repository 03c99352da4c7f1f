"""Positions in text: lines from 0, columns in code points, ends exclusive."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    line: int
    column: int

    def down(self, lines: int) -> Position:
        """Return the position `lines` lines further down."""
        return Position(self.line + lines, self.column)

    def up(self, lines: int) -> Position:
        """Return the position `lines` lines further up.

        An absolute position becomes relative to the chunk that begins at line `lines`.
        """
        return Position(self.line - lines, self.column)


@dataclass(frozen=True, slots=True, order=True)
class Range:
    start: Position
    end: Position

    @staticmethod
    def of_line(line: int, text: str) -> Range:
        """Return the range of a line's text, without the indentation."""
        start = len(text) - len(text.lstrip())
        return Range(Position(line, start), Position(line, max(start, len(text.rstrip()))))

    def __contains__(self, position: Position) -> bool:
        return self.start <= position <= self.end

    def holds(self, range: Range) -> bool:
        """Return whether another range is within this one."""
        return self.start <= range.start and range.end <= self.end

    def shifted(self, lines: int) -> Range:
        """Return the range `lines` lines further down.

        A chunk's range becomes absolute with the chunk's first line.
        """
        return Range(self.start.down(lines), self.end.down(lines)) if lines else self

    def touches(self, range: Range) -> bool:
        """Return whether the two overlap or meet."""
        return self.start <= range.end and range.start <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit that replaces `range` by `text`."""

    range: Range
    text: str

    def shifted(self, lines: int) -> Edit:
        """Return the same edit `lines` lines further down."""
        return Edit(self.range.shifted(lines), self.text)


def normalized(text: str) -> str:
    """Return the text with every line end as `\\n`, as Python reads it; positions are unchanged.

    Lines end at `\\n`, `\\r\\n` and `\\r` and nowhere else (not at a form feed, not at U+2028). A
    byte order mark becomes a form feed, which Python ignores at the start of a line, so that the
    first line keeps its columns.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\f" + text[1:] if text.startswith("\ufeff") else text


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends; after a final line end, an empty line."""
    return normalized(text).split("\n")


def text_in(lines: list[str], range: Range) -> str:
    """Return the text of a range of lines without their ends."""
    part = lines[range.start.line : range.end.line + 1]
    text = "\n".join(part)
    end = len(text) - len(part[-1]) + range.end.column if part else 0
    return text[range.start.column : end]


def code_point_column(line: str, byte: int) -> int:
    """Return the code point column of a UTF-8 byte column.

    A byte inside a character gives that character's column.
    """
    if line.isascii():
        return byte
    encoded = line.encode("utf-8", "surrogatepass")
    past = max(0, byte - len(encoded))
    # Bytes `10xxxxxx` go on with a character of UTF-8.
    while 0 < byte < len(encoded) and encoded[byte] & 0xC0 == 0x80:
        byte -= 1
    return len(encoded[:byte].decode("utf-8", "surrogatepass")) + past


# A text with its syntax tree's positions: lines from 1, columns in UTF-8 bytes.


class SourceText:
    """A text, to convert the lines and UTF-8 columns of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.yields = "yield" in text

    def position(self, line: int, byte: int) -> Position:
        """Return the position of a tree's line (from 1) and column (in bytes)."""
        return Position(line - 1, code_point_column(self.lines[line - 1], byte))

    def range(
        self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.pattern | ast.alias
    ) -> Range:
        """Return the range of a node."""
        line, column = node.lineno, node.col_offset
        return Range(
            self.position(line, column),
            self.position(node.end_lineno or line, node.end_col_offset or column),
        )

    def between(self, range: Range) -> str:
        """Return the text of a range."""
        return text_in(self.lines, range)

    def text_of(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        return self.between(self.range(node))
