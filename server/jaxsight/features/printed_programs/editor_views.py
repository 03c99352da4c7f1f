"""What an editor shows of a program: colours, and the places of names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast, get_args

from jaxsight.features.printed_programs.jaxpr import TYPE
from jaxsight.features.printed_programs.program import (
    FUNCTION,
    HLO,
    JAXPR,
    KERNELS,
    STABLEHLO,
    PrintedProgram,
)

# Words of a program by kind, for an editor's colours; lexed line by line, where they are shown.


TokenKind = Literal[
    "variable", "function", "type", "number", "string", "keyword", "comment", "property"
]
KINDS: tuple[TokenKind, ...] = get_args(TokenKind)
"""Kinds of tokens, with the names that LSP has for them."""

_PATTERNS = {
    JAXPR: re.compile(
        rf"""
        (?P<comment>^\#[^\r\n]*)
        |(?P<string>'[^'\r\n]*'|"[^"\r\n]*")
        |(?P<keyword>\{{[ ]lambda\b|(?<=\.[ ])let\b|\bin(?=[ ]\())
        |(?P<property>[A-Za-z_]\w*(?==[^\s=]))
        |(?P<type>(?<=[\w.]:){TYPE})
        |(?P<operation>(?<=[ ]=[ ])[A-Za-z_][\w\-]*)
        |(?P<number>(?<![\w.])-?\d[\w.+\-]*)
        |(?P<word>[A-Za-z_<][\w<>.\-]*)
        """,
        re.VERBOSE | re.MULTILINE,
    ),
    STABLEHLO: re.compile(
        r"""
        (?P<comment>//[^\r\n]*)
        |(?P<word>@"[^"\r\n]*"|[%@][\w$.\-]+)
        |(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*")
        |(?P<type>\btensor<(?:[^<>\r\n]|<[^<>\r\n]*>)*>|![\w.]+(?:<[^<>\r\n]*>)?|\b(?:i|ui|si|f|bf)\d+\b)
        |(?P<keyword>\b(?:module|attributes|func\.func|public|private|cond|do|reducer|dense)\b)
        |(?P<operation>(?<![\w\#!.])(?:stablehlo|func|sdy|mhlo|chlo)\.\w+\b(?![ ]=[ ]))
        |(?P<short_operation>\b(?:call|return)\b)
        |(?P<property>\b[A-Za-z_][\w.]*(?=[ ]=[ ]))
        |(?P<number>(?<![\w.])-?(?:0x)?\d[\w.+\-]*)
        """,
        re.VERBOSE,
    ),
    HLO: re.compile(
        r"""
        (?P<comment>//[^\r\n]*|/\*[^\r\n]*?\*/)
        |(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*")
        |(?P<keyword>^HloModule\b|^ENTRY\b|\bROOT\b)
        |(?P<word>%[\w.\-]+)
        |(?P<type>\b[a-z][a-z0-9]*\[[^\]\r\n]*\](?:\{[^}\r\n]*\})?)
        |(?P<property>\b[A-Za-z_][\w\-]*(?==))
        |(?P<operation>(?<=[ ])[a-z][\w\-]*(?=\())
        |(?P<number>(?<![\w.%])-?\d[\d.e+\-]*)
        """,
        re.VERBOSE | re.MULTILINE,
    ),
    KERNELS: re.compile(r"(?P<keyword>^[ ]*\w[\w ]*(?=: ))", re.MULTILINE),
}


@dataclass(frozen=True, slots=True)
class PrintedToken:
    """A word at `start` of a kind of `KINDS`.

    `is_definition` says that it defines a name; `is_primitive` that it is an operation of JAX or
    XLA.
    """

    start: int
    end: int
    kind: TokenKind
    is_definition: bool = False
    is_primitive: bool = False


def tokens(program: PrintedProgram, first: int, last: int) -> Iterator[PrintedToken]:
    """Yield the words of the lines from `first` up to `last`, in order."""
    if first >= len(program.lines):
        return
    start, end = program.lines[first], program.end(last)
    for match in _PATTERNS[program.language].finditer(program.text, start, end):
        group, (begin, stop) = match.lastgroup or "", match.span()
        if group.endswith("operation"):
            yield PrintedToken(begin, stop, "function", is_primitive=True)
        elif group != "word":
            yield PrintedToken(begin, stop, cast("TokenKind", group))
        elif key := program.is_name(match[0], begin):
            named: TokenKind = "function" if key.startswith(FUNCTION) else "variable"
            yield PrintedToken(begin, stop, named, begin in program.definitions)
        else:  # perhaps the operation of an equation without results
            _, statement = next(program.statements_at(begin))
            if statement is not None and statement.operation_start == begin:
                yield PrintedToken(begin, stop, "function", is_primitive=True)


# From a name to its definition and to its uses.


_MOST_HIGHLIGHTS = 2_000
"""Occurrences of a value, a choice: those around the cursor; editors draw each."""
Span = tuple[int, int]
"""Offsets of start and end."""


def definition(program: PrintedProgram, offset: int) -> Span | None:
    """Return the definition of what is used at an offset.

    `None` if there is no use: neither at the definition itself nor anywhere else.
    """
    for start, end, path in program.repeated:
        if start <= offset <= end:
            block = program.by_path.get(path)
            return (block.start, block.start + 1) if block is not None else None
    if (named := program.key_at(offset)) is None:
        return None
    key, start, _ = named
    defined = program.definition(key, start)
    if defined is None or defined[1] == start:
        return None
    return program.word(defined[1])


def occurrences(program: PrintedProgram, offset: int) -> tuple[list[Span], Span | None]:
    """Return all places of the name at an offset, and its definition among them."""
    if (named := program.key_at(offset)) is None:
        return [], None
    key, start, _ = named
    defined = program.definition(key, start)
    if key.startswith(FUNCTION):
        # A name of a custom call is defined nowhere.
        places = program.places[key]
    elif defined is not None:
        places = list(program.uses(key, defined[0]))
    else:
        places = [start]
    spans = [program.word(place) for place in dict.fromkeys(places)]
    return spans, program.word(defined[1]) if defined is not None else None


def nearest(spans: list[Span], offset: int) -> list[Span]:
    """Return those of many places that are near an offset, in order."""
    if len(spans) <= _MOST_HIGHLIGHTS:
        return spans
    return sorted(sorted(spans, key=lambda span: abs(span[0] - offset))[:_MOST_HIGHLIGHTS])
