"""Source places in the protocol with a tracer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range inside one chunk: lines from 1, columns in UTF-8 bytes, the end exclusive."""

    chunk: str
    line: int
    column: int
    end_line: int
    end_column: int
