"""Chunks: statements of a module as a tracer compiles them, and the file names they have there.

A chunk is compiled under the file name `chunk_file(path, id, above)`, so every frame, warning and
location of JAX can be mapped to it; the line numbers of its code are those of the file, for code
that reads them, and the name has the number of lines above the chunk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHUNK = r"§(?P<chunk>[0-9a-f]{16})(?:\+(?P<above>\d+))?"


CHUNK_FILE = re.compile(rf"(?P<path>[^\n\"'<>]*?){_CHUNK}")
"""Finds `chunk_file` names inside any text (tracebacks, warnings, JAX's messages)."""


_NAME = re.compile(rf"(?P<path>.*){_CHUNK}", re.DOTALL)
"""A complete `chunk_file` name, whose path may contain any character."""


def chunk_file(path: str, chunk: str, above: int = 0) -> str:
    """Return the file name under which a chunk is compiled.

    It has the real path, a section sign, the chunk's id, and the number of lines above it.
    """
    return f"{path}§{chunk}+{above}" if above else f"{path}§{chunk}"


def chunk_of(name: str) -> re.Match[str] | None:
    """Return the parts of a `chunk_file` name, or `None` for another name."""
    return _NAME.fullmatch(name)


def real_file(name: str) -> str:
    """Return the path of the file for a file name that code is compiled under."""
    parts = chunk_of(name)
    return parts["path"] if parts is not None else name


def line_in_chunk(parts: re.Match[str], line: int) -> int:
    """Return the line in the chunk for a line of code in the file; `found` is from `chunk_of`."""
    return line - int(parts["above"] or 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A top-level part of a module: a statement, or several that share a line.

    `id` is 16 hex digits that identify this text (equal texts in a file have equal ids).
    `key` identifies its meaning: a digest of its syntax tree without positions, comments and
    docstrings, and of its dependencies in the slice.
    The tracer executes a chunk if and only if it has not yet executed this `key`.
    """

    id: str
    key: str
    text: str
    binds: tuple[str, ...] = ()
    executes: bool = False
    """It does more than bind names to functions, modules and constants, so it must run in order."""
    acts: bool = False
    """It may change anything: results of other chunks are valid only with this execution of it."""
    needed: bool = True
    """The function needs its names; errors of other chunks are caveats, not failures."""
    unlimited: bool = False
    """It may take as long as the whole request."""
    above: int = 0
    """Number of lines above it in the file.

    The `key` includes it only if code of the slice may read line numbers.
    """

    @property
    def may_be_skipped(self) -> bool:
        """Whether it is skipped if it takes long."""
        return not (self.needed or self.unlimited)


_SCOPE = re.compile(r"eq\[([^\]]*)\]")


def equation_path(name: str) -> str:
    """Return the path of an equation in the name of a lowered operation, or `""`.

    `jit(f)/eq[3]/while/body/eq[body.1]/mul` is `3/body/1`.
    If several operations became one, the first counts (see `equation_paths`).
    """
    return next(iter(equation_paths(name)), "")


def equation_paths(name: str) -> tuple[str, ...]:
    """Return the paths of all equations in the name of a lowered operation, in its order.

    XLA joins the names of operations that became one, either with `;`, of which only the first
    counts, or after their common beginning: `jit(f)/(eq[1]/dot_general:eq[4]/mul)` is `1` and `4`.
    """
    if "eq[" not in name:
        return ()
    names = _alternatives(name.split(";", 1)[0])
    paths = ("/".join(_SCOPE.findall(each)).replace(".", "/") for each in names)
    return tuple(dict.fromkeys(filter(None, paths)))


def _alternatives(name: str) -> list[str]:
    """Return the names that XLA has joined to one, in brackets at the beginning of a scope."""
    begin = 0 if name.startswith("(") else name.find("/(") + 1
    if not name.startswith("(", begin):
        return [name]
    depth, piece = 0, begin + 1
    choices: list[str] = []
    end = len(name)
    for at in range(begin, len(name)):
        letter = name[at]
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 or (depth == 1 and letter == ":"):
            choices.append(name[piece:at])
            piece = at + 1
        if depth == 0:
            end = at + 1
            break
    else:
        choices.append(name[piece:])
    rests = _alternatives(name[end:])
    return [
        name[:begin] + inner + rest
        for choice in choices
        for inner in _alternatives(choice)
        for rest in rests
    ]


_NUMBERS = re.compile(r"\d+|\D+")


def equation_order(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts paths of equations in program order: `3/body/10` after `3/body/2`."""
    return [
        (int(part), "") if part.isdigit() else (-1, part)
        for piece in path.split("/")
        for part in _NUMBERS.findall(piece)
    ]


# Source places in the protocol with a tracer.


@dataclass(frozen=True, slots=True)
class Span:
    """A range inside one chunk: lines from 1, columns in UTF-8 bytes, the end exclusive."""

    chunk: str
    line: int
    column: int
    end_line: int
    end_column: int
