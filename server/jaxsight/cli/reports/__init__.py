"""Findings in the formats of the terminal and of other tools.

Each module turns `Reported` into text, and does nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.engine.answers import Caveat, Finding
from jaxsight.engine.caveats import Completeness
from jaxsight.engine.fixes.verifying import Fix
from jaxsight.engine.uncompiled import Uncompiled


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding in a file; `source` is the file's text, for the lines to show."""

    path: str
    source: str
    finding: Finding
    caveats: tuple[Caveat, ...] = ()
    """What the answer that it was found in leaves out."""
    fix: Fix | None = None
    """What is proved to fix it, where that was asked for."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A function of a file whose answer leaves something out."""

    path: str
    function: Completeness


@dataclass(frozen=True, slots=True)
class Refused:
    """A function of a file that was not compiled."""

    path: str
    function: Uncompiled
