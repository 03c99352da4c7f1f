"""The explanation of the operation at a place in a printed program."""

from __future__ import annotations

from jaxsight.features.explained_operations.table import ExplainedOperation, explained
from jaxsight.features.printed_programs.program import STABLEHLO, PrintedProgram
from jaxsight.features.printed_programs.tokens import tokens


def explained_at(
    program: PrintedProgram, offset: int
) -> tuple[ExplainedOperation, int, int] | None:
    """Return the operation at an offset with its start and end; `None` if there is none."""
    line = program.line(offset)
    for token in tokens(program, line, line):
        if token.start > offset:
            break
        if offset > token.end:
            continue
        name = program.text[token.start : token.end]
        if program.language == STABLEHLO and token.kind in ("keyword", "string"):
            # `module` and `func.func` are keywords; names in MLIR's generic form are quoted.
            name = name.strip('"')
        elif not token.is_primitive:
            return None
        found = explained(program.language, name)
        return (found, token.start, token.end) if found is not None else None
    return None
