"""From a name to its definition and to its uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.features.printed_programs.program import FUNCTION, PrintedBlock, PrintedProgram

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
