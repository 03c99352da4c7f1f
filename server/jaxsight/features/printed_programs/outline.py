"""The outline of a program, and the parts that can be folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from jaxsight.features.printed_programs.program import (
    HLO,
    JAXPR,
    KERNELS,
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
