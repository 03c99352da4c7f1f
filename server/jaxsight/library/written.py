"""The source of equations as it is now in files and cells of notebooks."""

from __future__ import annotations

import linecache
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
    return " ".join(b"".join(bytes_of).decode(errors="replace").split())
