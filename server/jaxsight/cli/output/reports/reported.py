"""What `jaxsight check` reports: findings, and functions that could not be fully checked."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.features.caveats import Completeness
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.kernels.uncompiled import Uncompiled
from jaxsight.rules.finding import Finding
from jaxsight.source.slicing.caveat import Caveat


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding in a file; `source` is the file's text, which has the lines to print."""

    path: str
    source: str
    finding: Finding
    caveats: tuple[Caveat, ...] = ()
    """Statements that were skipped in the slice of the finding's function."""
    fix: Fix | None = None
    """A verified fix, if fixes were requested and there is one."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A function of a file with skipped statements in its slice."""

    path: str
    function: Completeness


@dataclass(frozen=True, slots=True)
class Refused:
    """A function of a file that was not compiled."""

    path: str
    function: Uncompiled
