"""Optimized HLO as a document: which line is of which equation, and the text without metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jaxsight.wire.chunks import equation_path

_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
"""The metadata of an instruction: names for profilers, and the path of its equation."""


def lines_of_equations(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of HLO that are of an equation, from 0, each with the equation's path."""
    for number, line in enumerate(lines):
        start = line.find('op_name="')
        if start < 0:
            continue
        path = equation_path(line[start + 9 : line.find('"', start + 9)])
        if path:
            yield number, path


def without_metadata(text: str) -> str:
    """Return HLO with as many lines, without the metadata of instructions."""
    return _METADATA.sub("", text)
