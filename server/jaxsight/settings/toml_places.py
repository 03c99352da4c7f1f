"""The places of the keys and values of a TOML document, which `tomllib` does not report.

The text must be valid TOML (`tomllib` has parsed it before): this scans it and checks nothing.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass

from jaxsight.source.text import Position, Range

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
_WORD = re.compile(r"[^\s,\]}#]+(?: \d\d:[^\s,\]}#]+)?")
"""A number, a boolean or a date; a space may separate a date and its time."""


@dataclass(frozen=True, slots=True)
class TomlPlace:
    """The ranges of a key and of its value.

    An array's element has no key, so both are the value's.
    """

    key: Range
    value: Range


def places(text: str) -> dict[Path, TomlPlace]:
    """Return the places of all keys and array elements of `text`, by path from the root."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Path, TomlPlace] = {}
        self._line_starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def document(self) -> None:
        table: Path = ()
        counts: dict[Path, int] = {}
        while True:
            self._blank()
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                start = self.at
                array = self.text.startswith("[[", self.at)
                self.at += 2 if array else 1
                self._blank()
                table, _ = self._dotted(counts)
                self._blank()
                self.at += 2 if array else 1
                if array:
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                header = self._range(start, self.at)
                self.places.setdefault(table, TomlPlace(header, header))
            else:
                self._pair(table, counts)

    def _pair(self, table: Path, counts: dict[Path, int]) -> None:
        start = self.at
        below, end = self._dotted({})
        self._blank()
        self.at += 1  # the equals sign
        self._blank()
        self._value((*table, *below), self._range(start, end))

    def _dotted(self, counts: dict[Path, int]) -> tuple[Path, int]:
        """Read a dotted key; return its path and its end.

        The path goes through the last element of arrays of tables.
        """
        path: Path = ()
        while True:
            if path in counts:
                path = (*path, counts[path])
            if match := _STRING.match(self.text, self.at):
                part = str(tomllib.loads(f"k = {match[0]}")["k"])
            else:
                match = _BARE_KEY.match(self.text, self.at)
                if match is None:
                    raise ValueError(f"no key at offset {self.at} of a TOML document")
                part = match[0]
            path = (*path, part)
            self.at = end = match.end()
            self._blank()
            if not self.text.startswith(".", self.at):
                return path, end
            self.at += 1
            self._blank()

    def _value(self, path: Path, key: Range | None) -> None:
        start = self.at
        match self.text[start]:
            case "[":
                self.at += 1
                index = 0
                while not self._closes("]"):
                    self._value((*path, index), None)
                    index += 1
            case "{":
                self.at += 1
                while not self._closes("}"):
                    self._pair(path, {})
            case _:
                match = _STRING.match(self.text, start) or _WORD.match(self.text, start)
                if match is None:
                    raise ValueError(f"no value at offset {start} of a TOML document")
                self.at = match.end()
        value = self._range(start, self.at)
        self.places[path] = TomlPlace(key or value, value)

    def _closes(self, bracket: str) -> bool:
        """Return whether the collection ends here, after a comma that may separate items."""
        self._blank()
        if self.text[self.at] == ",":
            self.at += 1
            self._blank()
        if self.text[self.at] != bracket:
            return False
        self.at += 1
        return True

    def _blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def _range(self, start: int, end: int) -> Range:
        return Range(self._position(start), self._position(end))

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset) - 1
        return Position(line, offset - self._line_starts[line])
