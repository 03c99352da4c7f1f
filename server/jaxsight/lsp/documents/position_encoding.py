"""Columns as clients count them: in UTF-8 bytes, UTF-16 units or code points, as negotiated.

The engine counts code points.
All positions in the protocol are converted here, line by line.
"""

from __future__ import annotations

from dataclasses import dataclass

_WIDENING: dict[str, tuple[int, ...]] = {
    "utf-8": (0x7F, 0x7FF, 0xFFFF),
    "utf-16": (0xFFFF,),
    "utf-32": (),
}
"""The code points after which a character has one more unit."""


def _width(encoding: str, character: str) -> int:
    """Return the number of a character's units."""
    return 1 + sum(ord(character) > last for last in _WIDENING[encoding])


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
        passed = 0
        for column, character in enumerate(line):
            if passed >= units:
                return column
            passed += _width(self.encoding, character)
        return len(line)

    def units(self, line: str, column: int) -> int:
        """Return the client's column of a code point.

        A column past the end of the line is moved to the end.
        """
        before = line[:column]
        if before.isascii():
            return len(before)
        return sum(_width(self.encoding, character) for character in before)
