"""A text with its syntax tree's positions: lines from 1, columns in UTF-8 bytes."""

from __future__ import annotations

import ast

from jaxsight.source.text import Position, Range, code_point_column, text_in


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
