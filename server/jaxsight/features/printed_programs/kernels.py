"""Read the list of kernels of a function: a statement for each kernel, without names."""

from __future__ import annotations

import re

from jaxsight.features.printed_programs.program import KERNELS, Block, Program, Statement

_KERNEL = re.compile(r"^[ ]*(?P<name>\w[\w ]*?): [^\n]*", re.MULTILINE)


def read(text: str) -> Program:
    """Read a list of kernels: the lines after the first empty one."""
    program = Program(KERNELS, text, Block(0, len(text)))
    for match in _KERNEL.finditer(text, max(0, text.find("\n\n"))):
        start = match.start("name")
        program.root.statements.append(
            Statement(start, match.end(), match["name"], start, name=match["name"])
        )
    return program
