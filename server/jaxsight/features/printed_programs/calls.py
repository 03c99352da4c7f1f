"""Which functions and computations of a program call which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.features.printed_programs.program import PrintedBlock, PrintedProgram


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
