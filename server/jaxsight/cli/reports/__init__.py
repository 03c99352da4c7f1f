"""Findings in the formats of the terminal and of other tools. Each module turns `Reported` into text, and does nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.engine.answers import Finding


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding in a file; `source` is the file's text, for the lines to show."""

    path: str
    source: str
    finding: Finding
