"""Words of a program by kind, for an editor's colours; lexed line by line, where they are shown."""

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
    lines = program.lines
    if first >= len(lines):
        return
    end = lines[last + 1] if last + 1 < len(lines) else len(program.text)
    for match in _PATTERNS[program.language].finditer(program.text, lines[first], end):
        group, (begin, stop) = match.lastgroup or "", match.span()
        if group.endswith("operation"):
            yield PrintedToken(begin, stop, "function", is_primitive=True)
        elif group != "word":
            yield PrintedToken(begin, stop, cast("TokenKind", group))
        elif key := program.is_name(match[0], begin):
            named: TokenKind = "function" if key.startswith(FUNCTION) else "variable"
            yield PrintedToken(begin, stop, named, begin in program.definitions)
        elif _is_operation(program, begin):
            yield PrintedToken(begin, stop, "function", is_primitive=True)


def _is_operation(program: PrintedProgram, start: int) -> bool:
    """Return whether an operation is named at an offset: that of an equation without results."""
    _, statement = next(program.statements_at(start))
    return statement is not None and statement.operation_start == start
