"""Read a program printed in any of the languages."""

from __future__ import annotations

import re

from jaxsight.features.printed_programs import hlo, jaxpr, stablehlo
from jaxsight.features.printed_programs.program import (
    HLO,
    JAXPR,
    KERNELS,
    STABLEHLO,
    PrintedProgram,
    PrintedStatement,
)

_KERNEL = re.compile(r"^[ ]*(?P<name>\w[\w ]*?): [^\n]*", re.MULTILINE)


def _kernels(text: str) -> PrintedProgram:
    """Read a list of kernels, the lines after the first empty one: statements without names."""
    program = PrintedProgram(KERNELS, text)
    for match in _KERNEL.finditer(text, max(0, text.find("\n\n"))):
        start = match.start("name")
        program.root.statements.append(
            PrintedStatement(start, match.end(), match["name"], start, name=match["name"])
        )
    return program


_READERS = {JAXPR: jaxpr.read, STABLEHLO: stablehlo.read, HLO: hlo.read, KERNELS: _kernels}


def read(language: str, text: str) -> PrintedProgram:
    """Read a program in one of `LANGUAGES`, in time linear in its length."""
    return _READERS[language](text)
