"""Read Python expressions after `=`: check the syntax and join the lines, without evaluating."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.examples.notation.tokens import DEEPEST, TokenReader
from jaxsight.examples.problems import Malformed, malformed, python_error, quoted
from jaxsight.source.text import Position, Range
from jaxsight.text import names
from jaxsight.text.parsing import quiet


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression's source, on one line and without comments, and its free names."""

    source: str
    names: tuple[str, ...]
    range: Range = field(default=Range(Position(0, 0), Position(0, 0)), compare=False)


def read_expression(source: ChunkText, start: int, end: int, subject: str) -> Expression:
    """Return the expression between two offsets; raise `Malformed` if Python cannot parse it."""
    reader = TokenReader(source, start, end)
    if reader.token.kind == "end":
        raise reader.expected(f"a Python expression after {quoted(f'{subject} =')}")
    first = reader.token.start
    _check_brackets(reader)
    text = source.text[first:end]
    try:
        # Parentheses let an expression continue over lines without its own.
        with quiet():
            tree = ast.parse(f"({text}\n)", mode="eval")
        written = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = _place(source, first, end, error)
        raise malformed(place, *python_error(error, "Python expression")) from error
    return Expression(written, names.free_in(written), reader.range_from(first))


def _check_brackets(reader: TokenReader) -> None:
    """Read to the end; raise `Malformed` at an unmatched bracket.

    The parentheses that `read_expression` adds would hide one.
    """
    open_: list[tuple[str, Malformed]] = []
    while reader.token.kind != "end":
        token = reader.token
        if token.is_("(", "[", "{"):
            closing = {"(": ")", "[": "]", "{": "}"}[token.text]
            open_.append((closing, reader.unclosed(token, closing)))
            if len(open_) > DEEPEST:
                raise reader.fail(f"brackets nested more than {DEEPEST} levels deep")
        elif token.is_(")", "]", "}"):
            if not open_:
                raise reader.fail(f"unmatched `{token.text}`")
            if (closing := open_.pop()[0]) != token.text:
                raise reader.expected(f"`{closing}`")
        elif token.is_("'", '"'):
            raise reader.fail("string is never closed")
        reader.advance()
    if open_:
        raise open_[-1][1]


def _place(source: ChunkText, first: int, end: int, error: Exception) -> Range:
    """Return the range of a parser's error, inside the expression."""
    if not isinstance(error, SyntaxError):
        return source.range(first, end)

    def offset(line: int | None, column: int | None) -> int | None:
        if line is None or column is None or line < 1 or column < 1:
            return None
        number = source.line_of(first) + line - 1
        if number >= source.line_count:
            return None
        start = first - 1 if line == 1 else source.line_bounds(number)[0]
        return start + column - 1

    start = offset(error.lineno, error.offset)
    stop = offset(error.end_lineno, error.end_offset)
    if start is None or not first <= start < end:
        return source.range(first, end)
    return source.range(start, min(end, stop) if stop is not None and stop > start else start + 1)
