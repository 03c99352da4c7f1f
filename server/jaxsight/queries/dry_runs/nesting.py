"""Where functions are: in others, which use them, and around loops."""

from __future__ import annotations

import re

from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk

_LOOP = re.compile(r"^[ \t]*(?:async )?(?:for|while)\b", re.MULTILINE)


def has_loop(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a function has a statement that is a loop."""
    lines = chunk.text.split("\n")[function.body_start.line : function.range.end.line + 1]
    return _LOOP.search("\n".join(lines)) is not None


def is_used_around(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a nested function is not only returned by that around it, but used there.

    The trace of the function around it has its shapes then.
    """
    if "<locals>" not in function.qualname:
        return False
    lines = chunk.text.split("\n")
    del lines[function.range.start.line : function.range.end.line + 1]
    name = re.escape(function.qualname.rpartition(".")[2])
    # A line that returns it may call it.
    used, called = re.compile(rf"\b{name}\b"), re.compile(rf"\b{name}\(")
    return any((called if "return" in line else used).search(line) for line in lines)


def around(qualname: str) -> tuple[str, ...]:
    """Return the functions that a nested function is in."""
    parts = qualname.split(".<locals>.")[:-1]
    return tuple(".<locals>.".join(parts[: n + 1]) for n in range(len(parts)))
