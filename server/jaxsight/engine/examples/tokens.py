"""Tokens of example inputs, and how a reader fails at one: with its place and what was expected there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal as OneOf

from jaxsight.engine.examples.problems import MALFORMED, Malformed, problem
from jaxsight.engine.examples.source import Source
from jaxsight.engine.text import Range

DEEPEST = 60
"""How deep brackets may nest: more is a slip, and would exhaust the stack."""

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


class Reader:
    """The tokens from `start` to `end` of a source, one at a time."""

    def __init__(self, source: Source, start: int = 0, end: int | None = None) -> None:
        self.source = source
        self._end = len(source.text) if end is None else end
        self._last = start
        self.token = self._scan(start)

    def advance(self) -> Token:
        token = self.token
        self._last = token.end
        self.token = self._scan(token.end)
        return token

    def peek(self) -> Token:
        """The token after the current one."""
        return self._scan(self.token.end)

    def range_from(self, start: int) -> Range:
        """From an offset to the end of what was read."""
        return self.source.range(start, self._last)

    def token_range(self, token: Token) -> Range:
        return self.source.range(token.start, token.end)

    def fail(self, message: str, token: Token | None = None, code: str = MALFORMED) -> Malformed:
        return Malformed(problem(code, self.token_range(token or self.token), message))

    def expected(self, what: str) -> Malformed:
        """The failure at the current token, which is named beside what was expected."""
        return self.fail(f"expected {what}, found {found(self.token)}")

    def take(self, operator: str, what: str | None = None) -> Token:
        if not self.token.is_(operator):
            raise self.expected(what or f"`{operator}`")
        return self.advance()

    def finish(self, what: str = "the end of the line") -> None:
        """Fails unless all was read."""
        if self.token.kind != "end":
            raise self.expected(what)

    def check_closed(self, opening: Token, closing: str) -> None:
        """Fails at `opening` when the text ends before its partner."""
        if self.token.kind == "end":
            raise self.fail(f"`{opening.text}` is not closed: expected `{closing}`", opening)

    def _scan(self, offset: int) -> Token:
        text, end = self.source.text, self._end
        blank = BLANK.match(text, offset, end)
        offset = blank.end() if blank else offset
        if offset >= end:
            # An empty range past the end would be drawn nowhere: stand right behind what was read.
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


def found(token: Token) -> str:
    """How a message names a token."""
    return "the end of the line" if token.kind == "end" else f"`{token.text}`"
