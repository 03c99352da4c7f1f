"""Read the list of kernels of a function: a statement for each kernel, without names."""

from __future__ import annotations

import re

from jaxsight.features.printed_programs.program import (
    KERNELS,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
)

_KERNEL = re.compile(r"^[ ]*(?P<name>\w[\w ]*?): [^\n]*", re.MULTILINE)


def read(text: str) -> PrintedProgram:
    """Read a list of kernels: the lines after the first empty one."""
    program = PrintedProgram(KERNELS, text, PrintedBlock(0, len(text)))
    for match in _KERNEL.finditer(text, max(0, text.find("\n\n"))):
        start = match.start("name")
        program.root.statements.append(
            PrintedStatement(start, match.end(), match["name"], start, name=match["name"])
        )
    return program
