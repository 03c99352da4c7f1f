"""A printed program: its blocks, their statements, and where each name is defined and used."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from jaxsight.source.text import Position, Range

JAXPR, STABLEHLO, HLO, KERNELS = LANGUAGES = ("jaxpr", "stablehlo", "hlo", "kernels")

_WORDS = {
    JAXPR: re.compile(r"[^\s\[\](){};,=:]+"),
    STABLEHLO: re.compile(r'@"[^"\n]*"|[%@][\w$.\-]+'),
    HLO: re.compile(r"%?[\w.\-]+"),
    KERNELS: re.compile(r"[\w.\-]+"),
}

DEEPEST = 100
"""Blocks around a block (Python recurses 1,000 deep); deeper ones are part of the one around."""

FUNCTION = "@"
"""The first character of the key of a function or computation in `Program.places`.

The outermost jaxpr, which has no name, has this as its key.
"""


@dataclass(slots=True, eq=False)
class PrintedStatement:
    """An equation, operation or instruction, from `start` to `end`."""

    start: int
    end: int = 0
    operation: str = ""
    operation_start: int = 0
    called: tuple[str, int] | None = None
    """The key of what a call in a jaxpr calls, and the offset of its name: `name=dense`."""


@dataclass(slots=True, eq=False)
class PrintedBlock:
    """A part of a program with names of its own: a jaxpr, function, region or computation.

    `name` is at `name_start`, or empty (-1).
    """

    start: int
    end: int = 0
    name: str = ""
    name_start: int = -1
    key: str = ""
    """The key of a function (`function_key`)."""
    parent: PrintedBlock | None = None
    sees_outside: bool = False
    """Whether names of the block around it are visible."""
    is_function: bool = False
    statements: list[PrintedStatement] = field(default_factory=list)
    blocks: list[PrintedBlock] = field(default_factory=list)
    """The blocks directly inside, in order, also those of its statements."""
    defined: dict[str, int] = field(default_factory=dict)
    """The offset of the definition of each of its names."""


@dataclass(eq=False, repr=False)
class PrintedProgram:
    """A printed program in one of `LANGUAGES`."""

    language: str
    text: str
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The offsets of each name, in order: of values by name, of functions by `function_key`.

    Names of HLO's values are without `%` (`value_key`).
    """
    functions: dict[str, PrintedBlock] = field(default_factory=dict)
    """Functions by key; symbols without a block are in `root.defined`."""

    def __post_init__(self) -> None:
        text = self.text
        self.root = PrintedBlock(0, len(text))
        """The whole text."""
        self.lines = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
        """The offset of each line."""

    def add(self, block: PrintedBlock) -> None:
        """Take a function up, unless there is one with its key."""
        block.is_function = True
        self.functions.setdefault(block.key, block)

    def end(self, line: int) -> int:
        """Return the offset of the end of a line, after its line break."""
        return self.lines[line + 1] if line + 1 < len(self.lines) else len(self.text)

    def offset(self, position: Position) -> int:
        """Return the offset of a position; one outside the text is moved to an edge."""
        line, last = position.line, len(self.lines) - 1
        if line > last:
            return len(self.text)
        end = self.end(line) - (line < last)
        return max(0, min(self.lines[line] + position.column, end))

    def line(self, offset: int) -> int:
        """Return the line (from 0) of an offset."""
        return bisect_right(self.lines, offset) - 1

    def position(self, offset: int) -> Position:
        """Return the position of an offset."""
        line = self.line(offset)
        return Position(line, offset - self.lines[line])

    def range(self, start: int, end: int) -> Range:
        """Return the range between two offsets."""
        return Range(self.position(start), self.position(end))

    def line_range(self, line: int) -> tuple[int, int]:
        """Return the offsets of the beginning and end of a line's text, without indentation."""
        start = self.lines[line]
        stripped = self.text[start : self.end(line)].rstrip()
        indent = len(stripped) - len(stripped.lstrip())
        return start + indent, start + len(stripped)

    def block_at(self, offset: int) -> PrintedBlock:
        """Return the innermost block around an offset."""
        block = self.root
        while True:
            index = bisect_right(block.blocks, offset, key=attrgetter("start")) - 1
            if index < 0 or offset > block.blocks[index].end:
                return block
            block = block.blocks[index]

    def statement_at(self, offset: int) -> PrintedStatement | None:
        """Return the innermost statement around an offset."""
        statements = self.block_at(offset).statements
        index = bisect_right(statements, offset, key=attrgetter("start")) - 1
        return statements[index] if index >= 0 and offset <= statements[index].end else None

    def word(self, offset: int) -> tuple[int, int]:
        """Return start and end of the word around an offset; both are `offset` if there is none."""
        line = self.line(offset)
        start, end = self.lines[line], self.end(line)
        # Words do not contain spaces, and lines may have millions of characters.
        first = max(start, self.text.rfind(" ", start, offset) + 1)
        last = self.text.find(" ", offset, end)
        window = self.text[first : last if last >= 0 else end]
        for match in _WORDS[self.language].finditer(window):
            if match.start() <= offset - first <= match.end():
                return first + match.start(), first + match.end()
        return offset, offset

    def key_at(self, offset: int) -> tuple[str, int, int] | None:
        """Return the key, start and end of the name at an offset, if there is one."""
        start, end = self.word(offset)
        key = self.is_name(self.text[start:end], start)
        return (key, start, end) if key else None

    def is_name(self, word: str, start: int) -> str:
        """Return the key of a word if it is a name at `start`, else an empty text."""
        key = value_key(word) if self.language == HLO else word
        for candidate in (key, function_key(word)):
            if (places := self.places.get(candidate)) is not None:
                index = bisect_left(places, start)
                if index < len(places) and places[index] == start:
                    return candidate
        return ""

    def definition(self, key: str, offset: int) -> tuple[PrintedBlock, int] | None:
        """Return where the name at an offset is defined, with the block; `None` if unknown."""
        if key.startswith(FUNCTION):
            function = self.functions.get(key)
            if function is not None and function.name_start >= 0:
                return self.root, function.name_start
            start = self.root.defined.get(key)
            return (self.root, start) if start is not None else None
        block: PrintedBlock | None = self.block_at(offset)
        while block is not None:
            if (start := block.defined.get(key)) is not None:
                return block, start
            block = block.parent if block.sees_outside else None
        return None

    def uses(self, key: str, block: PrintedBlock) -> Iterator[int]:
        """Yield the offsets of a name that `block` defines, its definition included."""
        places = self.places.get(key, [])
        first = bisect_left(places, block.start)
        last = bisect_right(places, block.end)
        for offset in places[first:last]:
            defined = self.definition(key, offset)
            if defined is not None and defined[0] is block:
                yield offset


def function_key(word: str) -> str:
    """Return the key of a function or computation in `Program.places`."""
    return FUNCTION + word.lstrip("@%")


def value_key(word: str) -> str:
    """Return the key of an HLO instruction, which is printed with `%` or without."""
    return word.removeprefix("%")
