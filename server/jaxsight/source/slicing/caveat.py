"""A caveat: a statement that an answer skipped."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.source.text import Range


@dataclass(frozen=True, slots=True)
class Caveat:
    """Why an answer may differ from that of the imported module.

    It names the statement at `range` and gives the reason in one clause.
    """

    range: Range
    reason: str
