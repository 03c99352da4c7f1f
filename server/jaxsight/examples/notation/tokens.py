"""Tokens of example inputs, and the errors of a reader: where it stopped and what it expected."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from jaxsight.examples.problems import MALFORMED, Malformed, problem, quoted
from jaxsight.source.text import Position, Range

# Text of a chunk: offsets into it are converted to the chunk's positions, and back.
#
# Lines end where Python ends them (`\n`, `\r\n`, `\r`), nowhere else.

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


DEEPEST = 60
"""Nesting of brackets, a choice: more is a mistake, and would exhaust the stack of Python, which
recurses 1,000 deep, several functions for each."""

BLANK = re.compile(r"(?:[ \t\f\r\n]|\\\r?\n|#[^\r\n]*)*")
STRING = re.compile(
    r"(?P<prefix>[rRbBuUfF]{0,2})"
    r"(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
    r"|'(?!'')(?:[^'\\\r\n]|\\(?:\r\n|.))*'|\"(?!\"\")(?:[^\"\\\r\n]|\\(?:\r\n|.))*\")",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?"
)
_NAME = re.compile(r"[^\W\d]\w*")
_OPERATOR = re.compile(r"\.\.\.|//|\*\*|<=|>=|==|!=|.", re.DOTALL)

TokenKind = OneOf["string", "number", "name", "operator", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    start: int
    end: int

    def is_a(self, kind: TokenKind) -> bool:
        return self.kind == kind

    def is_(self, *operators: str) -> bool:
        return self.kind == "operator" and self.text in operators


class TokenReader:
    """Read the tokens from `start` to `end` of a source, one at a time."""

    def __init__(self, source: ChunkText, start: int = 0, end: int | None = None) -> None:
        self.source = source
        self._end = len(source.text) if end is None else end
        self._last = start
        self.token = self._scan(start)

    def advance(self) -> Token:
        """Return the current token and move to the next one."""
        token = self.token
        self._last = token.end
        self.token = self._scan(token.end)
        return token

    def peek(self) -> Token:
        """Return the token after the current one."""
        return self._scan(self.token.end)

    def range_from(self, start: int) -> Range:
        """Return the range from an offset to the end of the last token read."""
        return self.source.range(start, self._last)

    def token_range(self, token: Token) -> Range:
        return self.source.range(token.start, token.end)

    def fail(
        self, message: str, token: Token | None = None, code: str = MALFORMED, *, help: str = ""
    ) -> Malformed:
        """Return the error at a token, by default the current one."""
        return Malformed(problem(code, self.token_range(token or self.token), message, help))

    def expected(self, noun: str, *, help: str = "") -> Malformed:
        """Return the error at the current token, which the message quotes."""
        token = self.token
        found = "the end of the line" if token.kind == "end" else quoted(token.text)
        return self.fail(f"expected {noun}, found {found}", help=help)

    def take(self, operator: str, noun: str | None = None, *, help: str = "") -> Token:
        """Return the current token, which must be an operator, and move to the next one."""
        if not self.token.is_(operator):
            raise self.expected(noun or f"`{operator}`", help=help)
        return self.advance()

    def items(self, opening: Token, closing: str) -> Iterator[None]:
        """Yield before each of the items that commas separate, up to and past a closing bracket."""
        while not self.token.is_(closing):
            self.check_closed(opening, closing)
            yield
            if self.token.is_(","):
                self.advance()
            elif not self.token.is_(closing):
                self.check_closed(opening, closing)
                raise self.expected(f"`,` or `{closing}`")
        self.advance()

    def finish(self) -> None:
        """Raise `Malformed` unless all tokens were read."""
        if self.token.kind != "end":
            raise self.expected("the end of the line")

    def unclosed(self, opening: Token, closing: str) -> Malformed:
        """Return the error at a bracket without its closing bracket."""
        return self.fail(f"`{opening.text}` is never closed", opening, help=f"add `{closing}`")

    def check_closed(self, opening: Token, closing: str) -> None:
        """Raise `Malformed` at `opening` if the text ends before the closing bracket."""
        if self.token.kind == "end":
            raise self.unclosed(opening, closing)

    def _scan(self, offset: int) -> Token:
        text, end = self.source.text, self._end
        blank = BLANK.match(text, offset, end)
        offset = blank.end() if blank else offset
        if offset >= end:
            # Editors draw no empty range past the end: place it right after the last token.
            return Token("end", "", self._last, self._last)
        kinds: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
            ("string", STRING),
            ("number", _NUMBER),
            ("name", _NAME),
            ("operator", _OPERATOR),
        )
        for kind, pattern in kinds:
            if token := pattern.match(text, offset, end):
                return Token(kind, token[0], offset, token.end())
        raise AssertionError("an operator is any character")
