"""Read a program printed in any of the languages."""

from __future__ import annotations

from jaxsight.features.printed_programs import hlo, jaxpr, stablehlo
from jaxsight.features.printed_programs.program import HLO, JAXPR, STABLEHLO, PrintedProgram

_READERS = {JAXPR: jaxpr.read, STABLEHLO: stablehlo.read, HLO: hlo.read}


def read(language: str, text: str) -> PrintedProgram:
    """Read a program in one of `LANGUAGES`, in time linear in its length."""
    reader = _READERS.get(language)  # lists of kernels have no names
    return reader(text) if reader is not None else PrintedProgram(language, text)
