"""Positions in text, as the engine counts them: lines from 0, columns in code points, ends exclusive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Range:
    start: Position
    end: Position

    def __contains__(self, position: Position) -> bool:
        return self.start <= position <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `range` by `text`."""

    range: Range
    text: str
