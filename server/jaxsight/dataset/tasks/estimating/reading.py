"""Reads StableHLO as MLIR prints it, well enough to estimate what XLA makes of it.

The text may be anybody's: what is no program is read as something small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

_MOST = 10_000
"""Operations that functions may have where they are called, a choice: rows of the sample have at
most 1,441, but functions in text from anybody may call themselves."""

_HEADS = frozenset({"cond", "reducer"})
"""What regions begin with; those that begin with `^` match no operation."""

_OPERATION = re.compile(r'(?:%(\w+)(?::\d+)? = )?"?(?:\w+\.)*(\w+)')
_OPERAND = re.compile(r"%(\w+)")
_CARRIED = re.compile(r"%(\w+) = (?=%)")
_TYPE = re.compile(r"tensor<((?:\d{1,9}x)*)(?:complex<)?[a-z]*(\d{1,3})")


@dataclass(eq=False, slots=True)
class TextOperation:
    """An operation, with those of its regions in `blocks`."""

    name: str
    opcode: str
    operands: list[str]
    text: str
    blocks: list[list[TextOperation]] = field(default_factory=list)

    def results(self) -> list[tuple[int, int]]:
        """Return how many elements each result has, of how many bits."""
        types = _TYPE.findall(self.text.rpartition(" : ")[2].rpartition("->")[2])
        return [(prod(map(int, sizes.split("x")[:-1])), int(bits)) for sizes, bits in types]

    @property
    def elements(self) -> int:
        """The number of elements of the largest result."""
        return max((elements for elements, _ in self.results()), default=1)

    @property
    def callee(self) -> str:
        """The name of the function that it calls."""
        return _named(self.text)

    @property
    def carried(self) -> list[str]:
        """The names of what a loop carries, as its regions read them."""
        return _CARRIED.findall(self.text)


@dataclass(slots=True)
class TextProgram:
    """Functions by name, and how many operations may still be inlined."""

    functions: dict[str, list[TextOperation]]
    left: int = _MOST


def read_program(text: str) -> TextProgram:
    """Return the functions of StableHLO, which has an operation a line."""
    program = TextProgram({})
    blocks: list[list[TextOperation]] = []
    for line in map(str.strip, text.split("\n")):
        if line.startswith("func.func"):
            blocks = [program.functions.setdefault(_named(line), [])]
            continue
        if line.startswith("}"):
            del blocks[-1:]
            if blocks and blocks[-1] and not line.endswith("{"):
                blocks[-1][-1].text += line  # with the types of results
        elif blocks and (found := _OPERATION.match(line)) and found[2] not in _HEADS:
            name = found[1] or ""
            read = line.removeprefix(f"%{name}").partition(" : ")[0]
            operands = _OPERAND.findall(_CARRIED.sub("", read))
            blocks[-1].append(TextOperation(name, found[2], operands, line))
        if line.endswith("{") and blocks and blocks[-1]:
            blocks[-1][-1].blocks.append([])
            blocks.append(blocks[-1][-1].blocks[-1])
    return program


def _named(line: str) -> str:
    return line.partition("@")[2].partition("(")[0]
