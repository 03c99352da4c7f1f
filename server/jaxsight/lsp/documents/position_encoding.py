"""Columns as clients count them: in UTF-8 bytes, UTF-16 units or code points, as negotiated.

The engine counts code points.
All positions in the protocol are converted here, line by line.
"""

from __future__ import annotations

from dataclasses import dataclass

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""The codec of each encoding, and the bytes of its units."""


def _count(encoding: str, text: str) -> int:
    """Return the number of a text's units."""
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


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
            passed += _count(self.encoding, character)
        return len(line)

    def units(self, line: str, column: int) -> int:
        """Return the client's column of a code point.

        A column past the end of the line is moved to the end.
        """
        return _count(self.encoding, line[:column])
