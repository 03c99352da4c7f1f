"""Read a program printed in any of the languages."""

from __future__ import annotations

from jaxsight.features.printed_programs import hlo, jaxpr, kernels, stablehlo
from jaxsight.features.printed_programs.program import (
    HLO,
    JAXPR,
    KERNELS,
    STABLEHLO,
    PrintedProgram,
)

_READERS = {JAXPR: jaxpr.read, STABLEHLO: stablehlo.read, HLO: hlo.read, KERNELS: kernels.read}


def read(language: str, text: str) -> PrintedProgram:
    """Read a program in one of `LANGUAGES`, in time linear in its length."""
    return _READERS[language](text)
