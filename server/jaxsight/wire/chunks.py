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


_SCOPE = re.compile(r"eq\[([^\]]*)\]")


def equation_path(name: str) -> str:
    """Return the path of an equation in the name of a lowered operation, or `""`.

    `jit(f)/eq[3]/while/body/eq[body.1]/mul` is `3/body/1`.
    XLA joins names with `;` if several operations became one: the first counts.
    """
    if "eq[" not in name:
        return ""
    return "/".join(_SCOPE.findall(name.split(";", 1)[0])).replace(".", "/")
