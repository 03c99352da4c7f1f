"""Python expressions after `=`: checked for syntax and put on one line, never evaluated here."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxsight.engine.examples.problems import MALFORMED, Malformed, problem
from jaxsight.engine.examples.source import Source
from jaxsight.engine.examples.tokens import DEEPEST, Reader
from jaxsight.engine.text import Position, Range


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression's source, on one line and without comments, and the names that it takes from around it."""

    source: str
    names: tuple[str, ...]
    range: Range = field(default=Range(Position(0, 0), Position(0, 0)), compare=False)


def read_expression(source: Source, start: int, end: int, subject: str) -> Expression:
    """The expression between two offsets; raises `Malformed` where Python says that it is none."""
    reader = Reader(source, start, end)
    if reader.token.kind == "end":
        raise reader.expected(f"a Python expression after `{subject} =`")
    first = reader.token.start
    _check_brackets(reader)
    text = source.text[first:end]
    try:
        # In brackets an expression may go on over lines without more of its own.
        tree = ast.parse(f"({text}\n)", mode="eval")
        written = ast.unparse(tree)
    except SyntaxError as error:
        raise Malformed(
            problem(
                MALFORMED,
                _place(source, first, end, error),
                f"not a Python expression: {error.msg}",
            )
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Malformed(
            problem(MALFORMED, source.range(first, end), f"not a Python expression: {error}")
        ) from error
    return Expression(written, free_names(written), reader.range_from(first))


def _check_brackets(reader: Reader) -> None:
    """Reads to the end; fails at a bracket without its partner, which the brackets put around would hide."""
    open_: list[tuple[str, Malformed]] = []
    while reader.token.kind != "end":
        token = reader.token
        if token.is_("(", "[", "{"):
            closing = {"(": ")", "[": "]", "{": "}"}[token.text]
            failure = reader.fail(f"`{token.text}` is not closed: expected `{closing}`")
            open_.append((closing, failure))
            if len(open_) > DEEPEST:
                raise reader.fail(f"brackets nest deeper than {DEEPEST}")
        elif token.is_(")", "]", "}"):
            if not open_:
                raise reader.fail(f"`{token.text}` closes nothing")
            if (closing := open_.pop()[0]) != token.text:
                raise reader.expected(f"`{closing}`")
        elif token.is_("'", '"'):
            raise reader.fail("this string is not closed")
        reader.advance()
    if open_:
        raise open_[-1][1]


def _place(source: Source, first: int, end: int, error: SyntaxError) -> Range:
    """Where Python found the error, inside what was read."""

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


def free_names(expression: str) -> tuple[str, ...]:
    """The names that an expression reads from the module, sorted; those that it binds itself are left out."""
    table = symtable.symtable(expression, "<example inputs>", "eval")
    return tuple(sorted(set(_free(table))))


def _free(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        outside = not symbol.is_assigned() if top else symbol.is_global()
        if symbol.is_referenced() and outside:
            yield symbol.get_name()
    for child in table.get_children():
        yield from _free(child)
