"""What an editor shows of a program: outline, folds and colours, and the places of names."""

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
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
)

_DEEPEST = 40
"""Levels of an outline, a choice: `DocumentSymbol` of LSP is nested JSON, and clients recurse."""

_NOTABLE = re.compile(
    r"all-|async-|call|collective-|conditional|convolution|custom-call|dot|fusion|ragged-|reduce-"
    r"|rng|scatter|sort|while|cholesky|fft|triangular-solve|send|recv|infeed|outfeed|copy-start"
)
"""HLO instructions in an outline: kernels, calls and transfers."""


SymbolKind = Literal["function", "operation", "block"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A part of an outline, between the offsets `start` and `end`; its name is at `name_start`."""

    name: str
    detail: str
    kind: SymbolKind
    start: int
    end: int
    name_start: int
    name_end: int
    children: tuple[Symbol, ...] = ()


def symbols(program: PrintedProgram) -> list[Symbol]:
    """Return the outline: functions and computations, entry first, with notable statements."""
    root = program.root
    if program.language in (JAXPR, KERNELS):
        blocks = root.blocks or [root]
        return [symbol for block in blocks for symbol in _statements(program, block, 0)]
    # Functions are in the text itself, or in a module.
    around = [root, *(block for block in root.blocks if not block.is_function)]
    functions = [inner for block in around for inner in block.blocks if inner.is_function]
    shown = []
    for block in sorted(functions, key=lambda block: not block.is_entry):
        start, detail = block.name_start, "entry" if block.is_entry else ""
        name = program.text[start : program.word(start)[1]]
        end, children = start + len(name), tuple(_statements(program, block, 1))
        shown.append(Symbol(name, detail, "function", block.start, block.end, start, end, children))
    return shown


def _statements(program: PrintedProgram, block: PrintedBlock, depth: int) -> Iterator[Symbol]:
    """Yield the notable statements of a block, with those of their blocks."""
    if depth > _DEEPEST:
        return
    for statement in block.statements:
        is_call = bool(statement.calls) and not statement.operation.endswith("custom_call")
        is_notable = statement.blocks or statement.name or is_call
        if program.language == HLO:
            is_notable = _NOTABLE.match(statement.operation) is not None
        if not is_notable:
            continue
        children: list[Symbol] = []
        for inner in statement.blocks:
            inside = tuple(_statements(program, inner, depth + 2))
            if len(statement.blocks) == 1 or not inside:
                children += inside
            else:
                start, end = inner.start, max(inner.end, inner.start)
                name_end = min(end, program.line_range(program.line(start))[1])
                name = inner.name or "region"
                children.append(Symbol(name, "", "block", start, end, start, name_end, inside))
        yield _statement(program, statement, tuple(children))


def _statement(
    program: PrintedProgram, statement: PrintedStatement, children: tuple[Symbol, ...]
) -> Symbol:
    """Return the symbol of a statement: an HLO's result, what a call calls, else the operation."""
    text = program.text
    start = statement.operation_start or statement.start
    name, detail = statement.operation, ""
    kind: SymbolKind = "operation"
    end = start + len(name)
    if program.language == HLO:
        result = text[statement.start : start].removeprefix("ROOT ")
        detail, start = name, start - len(result)
        name = result.partition(" ")[0]
        end = start + len(name)
    elif statement.calls:
        start, end = program.word(statement.calls[0][1])
        if statement.name:
            start = statement.calls[0][1]
            end = start + len(statement.name)
        detail, name, kind = name, statement.name or text[start:end], "function"
    elif program.language != KERNELS:
        detail = text[statement.start : start].rstrip("= ").split("\n")[0]
    else:
        detail = text[end + 2 : statement.end]
    return Symbol(name, detail, kind, statement.start, statement.end, start, end, children)


_COMMENTS = re.compile(r"(?:^[ \t]*(?:#|//)[^\n]*\n?){2,}", re.MULTILINE)
_TABLE = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)+", re.MULTILINE
)
"""Tables of source positions, which XLA prints before the computations."""


@dataclass(frozen=True, slots=True)
class FoldedLines:
    """Lines that can be folded into the first of them; `is_comment` for comments."""

    first: int
    last: int
    is_comment: bool = False


def folds(program: PrintedProgram) -> list[FoldedLines]:
    """Return the sections, blocks and statements of several lines, and runs of comments."""
    by_line = {section.first: section for section in _sections(program)}
    waiting = [program.root]
    while waiting:
        block = waiting.pop()
        waiting += block.blocks
        parts: list[PrintedBlock | PrintedStatement] = [*block.blocks, *block.statements]
        for part in parts:
            # The last line, with the closing bracket, remains visible.
            first, last = program.line(part.start), program.line(part.end) - 1
            if last > first and (first not in by_line or by_line[first].last < last):
                by_line[first] = FoldedLines(first, last)
    for pattern in (_COMMENTS, _TABLE):
        for match in pattern.finditer(program.text):
            first, last = program.line(match.start()), program.line(match.end() - 1)
            by_line.setdefault(first, FoldedLines(first, last, is_comment=True))
    return sorted(by_line.values(), key=lambda fold: fold.first)


_SECTION = re.compile(r"(?P<indent>[ ]*)# (?P<path>\S.*?)(?: · .*)?")


def _sections(program: PrintedProgram) -> Iterator[FoldedLines]:
    """Yield the sections of a jaxpr or a list of kernels, which begin with a comment each.

    A section has those whose path begins with its own, and ends with its jaxpr.
    """
    if program.language not in (JAXPR, KERNELS):
        return
    lines = [(number, line) for number, line in enumerate(program.text.split("\n")) if line.strip()]
    opened: list[tuple[int, list[str], int]] = []
    last = 0
    for number, line in lines:
        indent = len(line) - len(line.lstrip())
        path = _section(program, line)
        while opened and (
            indent < opened[-1][0] or (path and opened[-1][1] != path[: len(opened[-1][1])])
        ):
            first = opened.pop()[2]
            if last > first:
                yield FoldedLines(first, last)
        if path and not (opened and opened[-1][:2] == (indent, path)):
            opened.append((indent, path, number))
        last = number
    yield from (FoldedLines(first, last) for _, _, first in opened if last > first)


def _section(program: PrintedProgram, line: str) -> list[str]:
    """Return the path of the section that a line begins; empty for other lines.

    Comments at the start of a line in a jaxpr are about the whole text.
    """
    match = _SECTION.fullmatch(line)
    if match is None or (program.language == JAXPR and not match["indent"]):
        return []
    return str(match["path"]).split("/")


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
_MOST_SELECTIONS = 40
"""Parts that a selection grows by, then the whole text: `SelectionRange` of LSP is nested JSON."""

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


def selections(program: PrintedProgram, offset: int) -> list[Span]:
    """Return growing parts around an offset: word, operands, statement, block… to the whole."""
    candidates = [program.word(offset)]
    for block, statement in program.statements_at(offset):
        if statement is not None:
            candidates.append((statement.operands, statement.operands_end))
            candidates.append((statement.start, statement.end))
        candidates.append((block.start, block.end))
    candidates.append((0, len(program.text)))
    chosen = [(offset, offset)]
    for start, end in candidates:
        inner_start, inner_end = chosen[-1]
        contains = start <= inner_start and inner_end <= end
        if contains and (start, end) != chosen[-1]:
            chosen.append((start, end))
    grown = chosen[1:] or chosen
    return [*grown[:_MOST_SELECTIONS], grown[-1]] if len(grown) > _MOST_SELECTIONS else grown


def nearest(spans: list[Span], offset: int) -> list[Span]:
    """Return those of many places that are near an offset, in order."""
    if len(spans) <= _MOST_HIGHLIGHTS:
        return spans
    return sorted(sorted(spans, key=lambda span: abs(span[0] - offset))[:_MOST_HIGHLIGHTS])


# Which functions and computations of a program call which.


@dataclass(frozen=True, slots=True)
class PrintedCall:
    """A call of function `callee` in function `caller`, between offsets."""

    caller: str
    callee: str
    start: int
    end: int


def function_at(program: PrintedProgram, offset: int) -> str | None:
    """Return the key of the function that is named at an offset, else of the one around it."""
    named = program.key_at(offset)
    if named is not None and named[0] in program.functions:
        return named[0]
    block: PrintedBlock | None = program.block_at(offset)
    while block is not None and not block.is_function:
        block = block.parent
    return block.key if block is not None else None


def calls(program: PrintedProgram) -> Iterator[PrintedCall]:
    """Yield all calls in a program, in order within a function."""
    waiting = [(program.root, "")]
    while waiting:
        block, caller = waiting.pop()
        if block.is_function:
            caller = block.key
        waiting += [(inner, caller) for inner in block.blocks]
        for statement in block.statements if caller else ():
            for callee, start in statement.calls:
                if callee in program.functions:
                    yield PrintedCall(caller, callee, start, program.word(start)[1])
