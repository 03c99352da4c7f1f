"""Columns as clients count them: in UTF-8 bytes, UTF-16 units or code points, as negotiated.

The engine counts code points.
All positions in the protocol are converted here, line by line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _utf8(character: str) -> int:
    point = ord(character)
    return 1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF)


def _utf16(character: str) -> int:
    return 1 + (ord(character) > 0xFFFF)


def _utf32(character: str) -> int:
    return 1


_WIDTHS: dict[str, Callable[[str], int]] = {"utf-8": _utf8, "utf-16": _utf16, "utf-32": _utf32}


@dataclass(frozen=True, slots=True)
class Units:
    """A position encoding of LSP 3.17: `utf-8`, `utf-16` or `utf-32`."""

    encoding: str = "utf-16"

    def column(self, line: str, units: int) -> int:
        """Return the index of the code point at the client's column `units`.

        A column inside a code point is moved to its end.
        """
        if line.isascii():
            return min(units, len(line))
        width = _WIDTHS[self.encoding]
        passed = 0
        for column, character in enumerate(line):
            if passed >= units:
                return column
            passed += width(character)
        return len(line)

    def units(self, line: str, column: int) -> int:
        """Return the client's column of a code point.

        A column past the end of the line is moved to the end.
        """
        before = line[:column]
        if before.isascii():
            return len(before)
        return sum(map(_WIDTHS[self.encoding], before))
