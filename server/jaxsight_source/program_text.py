"""What the process that reads program files (`jaxsight_source.start`) answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProgramLanguage = Literal["python", "stablehlo", "hlo", "jaxpr", "graph"]


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program in a language."""

    text: str
    name: str
    source: str
    """What the file contains, such as `StableHLO text`."""
    equations: int
    proofs: tuple[str, ...] = ()
    """How Python was proved: `Source.proofs`."""
    not_run: str = ""
    opaque: tuple[str, ...] = ()
    """Targets of calls that the program only names."""
    links: tuple[tuple[int, int], ...] = ()
    """Pairs of a line of the text and a line of the file that it comes from, from 0."""
