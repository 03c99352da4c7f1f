"""The source of equations as it is now in files and cells of notebooks."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxsight.interpreters.compat.locations import Location


def expression(at: Location) -> str:
    """Return the text at a location on one line; empty if it is not known.

    As in tracebacks, it is that of the file as `linecache` has it. IPython and Python's prompt put
    their cells there.
    """
    if at.end_line < at.line or not at.line:
        return ""
    lines = linecache.getlines(at.file)[at.line - 1 : at.end_line]
    if len(lines) != at.end_line - at.line + 1:
        return ""
    bytes_of = [line.encode() for line in lines]
    bytes_of[-1] = bytes_of[-1][: at.end_column]  # before the beginning: they may be one line
    bytes_of[0] = bytes_of[0][at.column :]
    text = " ".join(b"".join(bytes_of).decode(errors="replace").split())
    return text if _is_code(text) else ""


@functools.lru_cache(maxsize=1024)
def _is_code(text: str) -> bool:
    """Return whether a text is whole: marimo indents cells in another way than their file."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def file_title(file: str) -> str:
    """Return the name of a file, or `In [3]` for a cell of a notebook."""
    if "IPython" in sys.modules:
        from IPython import get_ipython

        shell = get_ipython()
        # `IPython.core.compilerop.CachingCompiler`, since IPython 8: a label and a name.
        titled = getattr(getattr(shell, "compile", None), "format_code_name", None)
        if titled is not None and (found := titled(file)):
            return str(found[1])
    return PurePath(file).name


def editor_range(at: Location) -> dict[str, dict[str, int]]:
    """Return the range of a location as editors count: from 0, in units of UTF-16."""
    return {
        "start": {"line": at.line - 1, "character": _units(at.file, at.line, at.column)},
        "end": {"line": at.end_line - 1, "character": _units(at.file, at.end_line, at.end_column)},
    }


def _units(file: str, line: int, column: int) -> int:
    before = linecache.getline(file, line).encode()[:column].decode(errors="replace")
    return len(before.encode("utf-16-le")) // 2
