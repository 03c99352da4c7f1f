"""The outline of a program, and the parts that can be folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.features.printed_programs.program import (
    HLO,
    JAXPR,
    KERNELS,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
)

_DEEPEST = 40
"""Levels of an outline; clients and JSON are recursive."""

_NOTABLE = re.compile(
    r"all-|async-|call|collective-|conditional|convolution|custom-call|dot|fusion|ragged-|reduce-"
    r"|rng|scatter|sort|while|cholesky|fft|triangular-solve|send|recv|infeed|outfeed|copy-start"
)
"""HLO instructions in an outline: kernels, calls and transfers."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A part of an outline, between the offsets `start` and `end`; its name is at `name_start`.

    `kind` is `function`, `operation` or `block`.
    """

    name: str
    detail: str
    kind: str
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
    functions = [block for block in _outer_functions(root) if block.is_function]
    return [_function(program, block) for block in sorted(functions, key=lambda b: not b.is_entry)]


def _outer_functions(root: PrintedBlock) -> Iterator[PrintedBlock]:
    waiting = [root]
    while waiting:
        block = waiting.pop(0)
        yield from (inner for inner in block.blocks if inner.is_function)
        waiting += [inner for inner in block.blocks if not inner.is_function and block is root]


def _function(program: PrintedProgram, block: PrintedBlock) -> Symbol:
    start = block.name_start
    name = program.text[start : program.word(start)[1]]
    children = tuple(_statements(program, block, 1))
    detail = "entry" if block.is_entry else ""
    return Symbol(
        name, detail, "function", block.start, block.end, start, start + len(name), children
    )


def _statements(program: PrintedProgram, block: PrintedBlock, depth: int) -> Iterator[Symbol]:
    """Yield the notable statements of a block, with those of their blocks."""
    if depth > _DEEPEST:
        return
    for statement in block.statements:
        if not _is_notable(program, statement):
            continue
        children: list[Symbol] = []
        for inner in statement.blocks:
            inside = tuple(_statements(program, inner, depth + 2))
            if len(statement.blocks) == 1 or not inside:
                children += inside
            else:
                children.append(_inner(program, inner, inside))
        yield _statement(program, statement, tuple(children))


def _is_notable(program: PrintedProgram, statement: PrintedStatement) -> bool:
    if program.language == HLO:
        return _NOTABLE.match(statement.operation) is not None
    is_call = bool(statement.calls) and not statement.operation.endswith("custom_call")
    return bool(statement.blocks or statement.name) or is_call


def _statement(
    program: PrintedProgram, statement: PrintedStatement, children: tuple[Symbol, ...]
) -> Symbol:
    text = program.text
    start = statement.operation_start or statement.start
    name, detail, kind = statement.operation, "", "operation"
    end = start + len(name)
    if program.language == HLO:
        result = text[statement.start : start]
        result = result.removeprefix("ROOT ")
        detail, start = name, start - len(result)
        name = result.partition(" ")[0]
        end = start + len(name)
    elif statement.name and statement.calls:
        detail, name, kind = name, statement.name, "function"
        start = statement.calls[0][1]
        end = start + len(name)
    elif statement.calls:
        start = statement.calls[0][1]
        start, end = program.word(start)
        detail, name, kind = name, text[start:end], "function"
    elif program.language != KERNELS:
        detail = text[statement.start : start].rstrip("= ").split("\n")[0]
    else:
        detail = text[end + 2 : statement.end]
    return Symbol(name, detail, kind, statement.start, statement.end, start, end, children)


def _inner(program: PrintedProgram, block: PrintedBlock, children: tuple[Symbol, ...]) -> Symbol:
    start, end = block.start, max(block.end, block.start)
    line_end = program.line_range(program.line(start))[1]
    return Symbol(
        block.name or "region", "", "block", start, end, start, min(end, line_end), children
    )


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
    for first, last in _comments(program):
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


_COMMENTS = re.compile(r"(?:^[ \t]*(?:#|//)[^\n]*\n?){2,}", re.MULTILINE)
_TABLE = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)+", re.MULTILINE
)
"""Tables of source positions, which XLA prints before the computations."""


def _comments(program: PrintedProgram) -> Iterator[tuple[int, int]]:
    for pattern in (_COMMENTS, _TABLE):
        for match in pattern.finditer(program.text):
            yield program.line(match.start()), program.line(match.end() - 1)
