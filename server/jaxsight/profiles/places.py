"""Where code is: a line of the user's files, or a library."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_STANDARD_LIBRARY = re.compile(r"[/\\]lib(?:64)?[/\\]python3[\d.]*t?[/\\](?!.*-packages[/\\])")


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line of a file, in a function of which only the name is known."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class LibraryPlace:
    """Code of a library, which no line of the user's is known to call."""

    library: str


Place = CodePlace | LibraryPlace


def library_of(file: str) -> str:
    """Return the library that a file belongs to, such as `flax`; empty for the user's own."""
    if match := _PACKAGES.search(file):
        return match[1].removesuffix(".py")
    return "python" if _STANDARD_LIBRARY.search(file) or file.startswith("<frozen ") else ""
